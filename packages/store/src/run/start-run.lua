-- Attempts start: written before the handler runs, and counted as a crash until its end takes that back. The fence grows
-- with each attempt, so that a worker that was thought dead cannot settle a run that another one has taken over.
--
-- Attempts are numbered here: BullMQ counts each worker that died while it held the job, even if it only postponed the job or had
-- not begun. An attempt that was handed back, or whose items are done, continues under its number (`again`).
--
-- A final run is started again in two cases. Its worker died between settling it and ending the job: BullMQ has not
-- counted that attempt as made, and there is nothing to do. Or the job had ended and was retried from outside, with its attempts
-- reset or not: the run is reopened.
--
-- Each: by: of runnerOf; own: the worker's own number for this start, the same if it is sent again; made: attempts that BullMQ counts as made; token:
--       that the worker took the job with, "" not checked
-- Returns of each: { "OK", fence, now, details, checkpoint ("" none), crashes, attempt (from 1), 1 if it may have begun before } |
--          { "LOST" } (another worker has the job by now, or is to have it) | { "GONE" } (the task was deleted) |
--          { "FORGOTTEN" } (its record is no longer kept) |
--          { "FINAL", outcome } | { "DROPPED" } | { "CANCELLED" } | { "CRASHED" } (to be settled) | { "WAIT", until, now } |
--          { "NEWER", until, now, format } (nothing is changed)
local now = nowMs()

local function start(run)
  local made = run.made
  run.by = runnerOf(run.by)
  -- Frozen, or cut off, for longer than its lock lasts: this start would count the job's current worker as dead.
  if run.token ~= "" and not isHeldWith(run.job, run.token) then return { "LOST" } end
  local was = readStart(run.key)
  if isNewerRun(was.v) then return { "NEWER", now + F.newerWait, now, was.v } end
  local state, details = was.state, was.info
  local attempt = tonumber(was.attempts) or 0
  local taskState = redis.call("HGET", run.task, "state")
  if not taskState then return { "GONE" } end
  if not state then
    -- Its job has failed before, and was retried from outside after its record was deleted.
    local again = tonumber(made) > 0 or traceOf(run.job) > 0
    return { again and "FORGOTTEN" or "GONE" }
  end
  -- A resend after a lost answer.
  local function isSentAgain()
    if was.worker ~= run.by.fields[2] then return false end
    return string.match(redis.call("HGET", run.key, "a:" .. attempt) or "", " (%d+)$") == run.own
  end
  if state == "final" then
    if not wasRetried(run.job, was.made, was.trace, made) then return { "FINAL", was.outcome } end
    reopen(run, was.outcome, now)
    was.crashes, was.itemCrashes, was.again = nil, nil, nil
  elseif state == "queued" and not was.again and isSentAgain() then
    -- Its attempt has ended since, and BullMQ is yet to be told.
    return { "LOST" }
  elseif state ~= "queued" and isSentAgain() then
    return { "OK", tonumber(was.fence), now, details, redis.call("HGET", run.stats, "checkpoint") or "",
      tonumber(was.crashes or 0), attempt, 1 }
  elseif state ~= "queued" then
    -- The attempt before never ended: its worker died. Its crash was counted when it started.
    local crash, named = unpack(redis.call("HMGET", run.task, "crash", "open"))
    local wait, most = crashRule(crash)
    local crashes = redis.call("HINCRBY", run.key, "crashes", 1)
    local deaths = crashes - (was.itemCrashes or 0)
    local _, _, inARow = readStarts(redis.call("HGET", run.stats, "starts"))
    wait = crashWait(wait, deaths, inARow, countOpen(named, run.open) - 1)
    was.crashes = crashes
    redis.call("HSET", run.key, "state", "queued", "notBefore", now + wait)
    was.notBefore = now + wait
    if deaths >= most then
      redis.call("HSET", run.key, "crashed", "1")
      was.crashed = "1"
    end
  end
  -- A cancel comes before any other end.
  if was.cancel and state ~= "final" then
    finish(run, "cancelled", now, { says = { "made", made } })
    return { "CANCELLED" }
  end
  if state ~= "final" and was.crashed then return { "CRASHED" } end
  local wait = heldUntil(was.notBefore and tonumber(was.notBefore), taskState, now)
  if wait then
    redis.call("HSET", run.key, "state", "queued")
    return { "WAIT", wait, now }
  end
  local stats = readStatsForStart(run.stats)
  local last = string.match(stats[2] or "", "^%S+ %S+ %S+ (%d+)")
  local minGap = ruleOf(was, "minGap")
  if minGap and last and not was.started and now < last + minGap then
    finish(run, "dropped", now, { says = { "made", made, "error", "started " .. (now - last) .. " ms after the run before" } })
    return { "DROPPED" }
  end
  return begin(run, was, made, stats, now)
end

local started = each(start)
afterEach()
return started
