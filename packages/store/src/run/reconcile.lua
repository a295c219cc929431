-- Checks the runs of a queue whose time has come. A run that no Carillon worker settled ends by the state of its job: here
-- if it succeeded and its task waits for nothing; otherwise it is returned with that state, for settle-run.lua, because its
-- consequences must be decided.
-- A final run's job is removed after its grace; one that was retried from outside is open again.
--
-- A member of K.runs without `@` is a task that is finished, and is deleted when it has lingered; or, with F.gone, the runs that a
-- deleted task left and nobody has cleared.
--
-- A.most: runs checked or cleared; A.longest: wait between two checks of a run (ms)
-- Returns: { now, 1 if more is due (0: that was all), { run id, "removed" | "reopened" | "succeeded" } or
--            { run id, "over", local name, outcome, error } or { local name, "lingered" } or { a set's name, "cleared" } … }
local now = nowMs()
local CLEAR_AT_MOST = 50
-- Bytes of an error that are sent, of which runs.ts keeps 16 * 1024 characters. BullMQ keeps whole texts: after this
-- many bytes no further ones are read.
local ERROR_AT_MOST = 64 * 1024
local READ_AT_MOST = 1024 * 1024
-- Age from which a run's live job is searched in BullMQ's lists (ms).
local OLD = 60000
local shortest, longest = F.lookAgain, tonumber(A.longest)
for list in pairs(MOST_JOBS) do checkExcess(list, math.min(excessOf(list), A.most), whole(now)) end
local ids = redis.call("ZRANGEBYSCORE", K.runs, "-inf", now, "LIMIT", 0, A.most)
local out = { now, #ids < tonumber(A.most) and 0 or 1 }

local function say(id, what) out[#out + 1] = { id, what } end

local function later(id, ms) redis.call("ZADD", K.runs, whole(now + ms), id) end

-- Defers work that would block Redis for too long to the next step, after all other due runs.
local function nextStep(id)
  later(id, 0)
  out[2] = 1
end

-- Bytes of errors that were read.
local read = 0

-- Tasks with a run that was returned to be settled: their later ends are settled after it.
local named = {}

-- Ends a run that succeeded, if nothing follows that would have to be decided, and this script may still delete records.
local function settled(run, state, waits)
  if waits or named[run.name] or forgotten >= EXCESS_AT_MOST then return false end
  finish(run, "succeeded", now, { stamps = stampsOf(run.job), survived = state ~= "queued" })
  return true
end

-- Raises the alerts of a live run. Returns when it would be late or slow next, nil never. (A plain worker reports no start.)
local function watchOpen(run, jobKey, watch)
  local lateAt, most = watchOf(run, watch)
  local started, reopened = unpack(redis.call("HMGET", run.key, "started", "reopened"))
  if not started then
    if not lateAt or now < lateAt then return lateAt end
    if not isHeld(jobKey) then raiseLate(run, lateAt) end
    return nil
  end
  local slowAt = most and math.max(tonumber(started), tonumber(reopened) or 0) + most
  if slowAt and now <= slowAt then return math.ceil(slowAt) + 1 end
  if slowAt then raiseSlow(run, slowAt) end
end

local function look(id)
  local runKey, jobKey = ours(F.keys.run, id), bullKey(id)
  local state, of, cancel, made, trace, v = unpack(redis.call("HMGET", runKey, "state", "of", "cancel", "made", "trace", "v"))
  -- For a newer node.
  if isNewerRun(v) then return later(id, longest) end
  local name, enqueued = string.match(of or "", "^(%S+) (%d+)")
  -- (Fails if the record is corrupt.)
  local run = (state or name) and runOf(id, name)
  local job = jobState(jobKey)
  local gen, open, wait, pending, watch
  if run then gen, open, wait, pending, watch = unpack(redis.call("HMGET", run.task, "gen", "open", "wait", "pending", "watch")) end
  local gone = not state or not gen
  local cancelled = cancel and state == "queued"
  -- Its job is to be removed, unless a worker holds it.
  local free = job == "live" and not isHeld(jobKey)
    and (gone or cancelled or enqueued and now - enqueued >= OLD and bullIsUnlisted(id))
  local tooMuch = free and not fits(id) or job == "done" and read >= READ_AT_MOST
  if tooMuch then return nextStep(id) end

  if gone then
    -- The task is gone; the rest of its run is deleted too, unless a worker holds it.
    redis.call("UNLINK", runKey, ours(F.keys.output, id), ours(F.keys.items, id))
    redis.call("ZREM", K.journal, id)
    if run then
      for _, set in ipairs({ run.history, run.failures }) do redis.call("ZREM", set, id) end
      removeOpen(open, run.task, run.open, id)
    end
    if job ~= "missing" and not bullRemove(id) then return later(id, shortest) end
    redis.call("ZREM", K.runs, id)
    return say(id, "removed")
  end
  if state == "final" then
    -- The sweep could not read or write all of it.
    if job == "missing" then return later(id, longest) end
    if job == "done" then
      -- Its job is not plain. The rest is for the sweep.
      if not bullRemove(id) then return later(id, shortest) end
      nextStep(id)
      return say(id, "removed")
    end
    -- Settled by its worker, which has not ended the job yet: it was not retried.
    if not wasRetried(jobKey, made, trace, attemptsMade(jobKey) or "0") then return later(id, shortest) end
    reopen(run, redis.call("HGET", runKey, "outcome") or "lost", now)
    redis.call("HSET", runKey, "state", "queued")
    later(id, shortest)
    return say(id, "reopened")
  end
  local waits = wait or pending
  -- Cancelled before a worker took it, so the run must be ended here.
  if free and bullRemove(id) then job = "missing" end
  if job == "live" then
    -- Check less often the longer it takes: a backlog of queued jobs must not keep the reconciler busy. If the task waits for the
    -- end, check each second, because a plain worker reports nothing (its run stays queued). A Carillon worker reports the end itself;
    -- checking serves only if it died.
    local after = math.min(longest, math.max(shortest, math.floor((now - tonumber(enqueued or now)) / 2)))
    if cancel or waits and state == "queued" then
      after = F.waitedFor
    elseif waits then
      after = math.min(after, F.waitedForStarted)
    end
    local at = watch and watchOpen(run, jobKey, watch)
    return later(id, at and math.min(after, math.max(1, at - now)) or after)
  end
  -- (Its job may have been removed by an earlier check, whose answer was lost.)
  local outcome, reason = cancelled and "cancelled" or "lost", nil
  if job == "done" then outcome, reason = jobOutcome(jobKey, id) end
  read = read + #(reason or "")
  -- A run with a cancel request ends as cancelled. (Plain workers get no cancel message: their runs keep their own outcome.)
  if cancel and state ~= "queued" then outcome = "cancelled" end
  if outcome == "succeeded" and settled(run, state, waits) then return say(id, outcome) end
  -- Checks again, in case the run is not settled meanwhile.
  later(id, shortest)
  named[name] = true
  out[#out + 1] = { id, "over", name, outcome, string.sub(reason or "", 1, ERROR_AT_MOST) }
end

-- Returns how many runs it took.
local function clear(id, most)
  local taken = clearRuns(id, ours(id, ""), most, now + shortest)
  if redis.call("ZSCORE", K.runs, id) then nextStep(id) else say(id, "cleared") end
  return taken
end

local swept = tried(sweep, ids, now) or {}
for _, id in ipairs(ids) do
  local run = swept[id] or {}
  if run.job then say(id, "removed") end
  -- A one-off task is deleted with its last run.
  if run.lingers then
    say(run.name, "lingered")
    later(run.name, shortest)
  end
end

local left = tonumber(A.most)
for _, id in ipairs(ids) do
  local took = 1
  -- Runs that are not checked stay due.
  if left <= 0 then
    out[2] = 1
    break
  elseif swept[id] then
    took = 1
  elseif string.sub(id, 1, #F.gone) == F.gone then
    local done, taken = pcall(clear, id, math.min(CLEAR_AT_MOST, left))
    if done then took = math.max(1, taken) else later(id, shortest) end
  elseif string.find(id, "@", 1, true) then
    -- Corrupt data in one record must not stop the others.
    if not pcall(look, id) then later(id, longest) end
  else
    local state, open = unpack(redis.call("HMGET", ours(F.keys.task, id), "state", "open"))
    local finished = state == "finished"
    if finished and (open or "") == "" then
      say(id, "lingered")
      later(id, shortest)
    elseif finished then
      later(id, longest)
    else
      redis.call("ZREM", K.runs, id)
    end
  end
  left = left - took
end

afterEnds()
return out
