-- Attempts start: written before the handler runs, and counted as a crash until its end takes that back. The fence grows
-- with each attempt, so that a worker that was thought dead cannot settle a run that another one has taken over.
--
-- Attempts are numbered here: BullMQ counts each time that a worker died with the job in its hands, also where it only put it off,
-- or had not begun. One that was handed back, or whose items are done, goes on under its number (`again`).
--
-- A final run is started again in two cases. Its worker died between settling it and ending the job: BullMQ has not
-- counted that attempt as made, and there is nothing to do. Or the job had ended and was retried from outside, with its attempts
-- set back or not: the run is open again.
--
-- ARGV of each: 1 worker, 2 pid, 3 host, 4 the worker's own number for this start: the same where it is sent again,
--       5 attempts that BullMQ counts as made, 6 wait after a crash (ms), 7 crashes after which the run is over, both where the
--       task says nothing, 8 the token that the worker took the job with ("" not checked)
-- Returns of each: { "OK", fence, now, details, checkpoint ("" none), crashes, attempt (from 1), 1 where it may have begun before } |
--          { "LOST" } (another worker has the job by now, or is to have it) | { "GONE" } (the task was deleted) |
--          { "FORGOTTEN" } (its record is no longer kept) |
--          { "FINAL", outcome } | { "DROPPED" } | { "CANCELLED" } | { "CRASHED" } (to be settled) | { "WAIT", until, now }
local now = nowMs()

local function start(run, worker, pid, host, own, made, crashWait, crashMost, token)
  -- Frozen, or cut off, for longer than its lock lasts: whoever has the job now would be taken for dead.
  if token ~= "" and redis.call("GET", run.job .. ":lock") ~= token then return { "LOST" } end
  local was = redis.call("HMGET", run.key, "state", "outcome", "made", "cancel", "info", "notBefore", "started",
    "worker", "attempts", "fence", "crashes", "trace", "again", "crashed")
  local state, details = was[1], was[5]
  local attempt = tonumber(was[9]) or 0
  if redis.call("EXISTS", run.task) == 0 then return { "GONE" } end
  if not state then
    -- Its job has failed before, and was retried from outside when its record had gone.
    local again = tonumber(made) > 0 or traceOf(run.job) > 0
    return { again and "FORGOTTEN" or "GONE" }
  end
  -- The same start once more: its answer was lost, and it was sent again.
  local function isSentAgain()
    if was[8] ~= worker then return false end
    return string.match(redis.call("HGET", run.key, "a:" .. attempt) or "", " (%d+)$") == own
  end
  if state == "final" then
    if not wasRetried(run.job, was[3], was[12], made) then return { "FINAL", was[2] } end
    reopen(run, run.id, was[2], now)
    was[11], was[13] = nil, nil
  elseif state ~= "queued" and isSentAgain() then
    return { "OK", tonumber(was[10]), now, details, redis.call("HGET", run.stats, "checkpoint") or "",
      tonumber(was[11] or 0), attempt, 1 }
  elseif state ~= "queued" then
    -- The attempt before never ended: its worker died. Its crash was counted when it started.
    local wait, most = string.match(redis.call("HGET", run.task, "crash") or "", "^(%d+) (%d+)$")
    wait, most = tonumber(wait or crashWait), tonumber(most or crashMost)
    local crashes = redis.call("HINCRBY", run.key, "crashes", 1)
    was[11] = crashes
    redis.call("HSET", run.key, "state", "queued", "notBefore", now + wait)
    was[6] = now + wait
    if crashes >= most then
      redis.call("HSET", run.key, "crashed", "1")
      was[14] = "1"
    end
  end
  -- First: however a run ends that someone wants to end, it was cancelled.
  if was[4] and state ~= "final" then
    finish(run, "cancelled", now, { says = { "made", made } })
    return { "CANCELLED" }
  end
  if state ~= "final" and was[14] then return { "CRASHED" } end
  if was[6] and now < tonumber(was[6]) then
    redis.call("HSET", run.key, "state", "queued")
    return { "WAIT", was[6], now }
  end
  local gap = string.match(details, '"minGap":(%d+)')
  local stats = redis.call("HMGET", run.stats, "lastStart", "attempts", "crashes", "consecutiveCrashes", "checkpoint",
    "starts")
  local last = stats[1]
  if gap and last and not was[7] and now < last + gap then
    finish(run, "dropped", now, { says = { "made", made, "error", "started " .. (now - last) .. " ms after the run before" } })
    return { "DROPPED" }
  end

  local fence = redis.call("HINCRBY", run.task, "fence", 1)
  if fence == 1 then
    -- From the clock on, as the generation: a task that was deleted and put again goes on above its old fences.
    fence = nowMicros()
    redis.call("HSET", run.task, "fence", fence)
  end
  local function grown(n, by) return whole((tonumber(stats[n]) or 0) + by) end
  local before = attempt
  -- What BullMQ counts as made, a plain worker may have done.
  attempt = math.max(before + (was[13] and 0 or 1), tonumber(made) + 1)
  local counts, fields = {}, {}
  if not was[7] then
    add(fields, "started", whole(now))
    counts = last and { "lastStart", whole(now), "starts", table.concat(startsOf(last, stats[6]), " ") } or { "lastStart", whole(now) }
  end
  redis.call("HSET", run.stats, "attempts", grown(2, attempt > before and 1 or 0), "crashes", grown(3, 1),
    "consecutiveCrashes", grown(4, 1), unpack(counts))
  if was[6] or was[13] then redis.call("HDEL", run.key, "notBefore", "again") end
  -- `a:<attempt>`: since when, and the worker's own number. Where the newest one runs is in fields of its own, and goes there with the
  -- next one: by the time of BullMQ's own word on it another worker may have taken over.
  local since = whole(now)
  if before > 0 then
    local newest = redis.call("HMGET", run.key, "a:" .. before, "worker", "pid", "host")
    local began, number = string.match(newest[1] or "", "^(%d+) (%d+)$")
    if attempt == before then
      since = string.match(newest[1] or "", "^%d+") or since
    elseif began then
      add(fields, "a:" .. before, table.concat({ began, newest[2] or "-", newest[3] or "-", newest[4] or "-", number }, " "))
    end
  end
  add(fields, "a:" .. attempt, since .. " " .. own)
  add(fields, "attempts", whole(attempt))
  redis.call("HSET", run.key, "state", "running", "fence", fence, "worker", worker, "pid", pid, "host", host, unpack(fields))
  return { "OK", fence, now, details, stats[5] or "", tonumber(was[11] or 0), attempt, attempt == before and 1 or 0 }
end

local started = each(start)
afterEach()
return started
