-- Looks at the runs of a queue whose time has come. A run that no Carillon worker settled ends as its job's own state says: here where
-- it succeeded and its task waits for nothing, otherwise it is named with that, for settle-run.lua, since what follows is to be decided.
-- A final run's job goes after its grace; one that was retried from outside is open again.
--
-- A member of `runs` without `@` is a task that is finished, and goes when it has lingered; or, with `gone:`, what the runs of a
-- deleted task left and nobody has cleared.
--
-- KEYS: 1 runs, 2 next, 3 tasks, 4 repeat (BullMQ's), 5 journal, 6 expected, 7 outcomes
-- ARGV: 1 runs looked at or cleared at most, 2 the queue's prefix of ours, 3 BullMQ's key prefix, 4 shortest and 5 longest wait between
--       looks (ms), 6 a completed job stays for, 7 a failed job stays for (ms); where the task says nothing: 8 successes and
--       9 failures kept, 10 successes and 11 failures are kept for (ms)
-- Returns: { now, 1 where more is due (0: that was all), { run id, "removed" | "reopened" | "succeeded" } or
--            { run id, "over", local name, outcome, error } or { local name, "lingered" } or { a set's name, "cleared" } … }
local now = nowMs()
local ours, bullPrefix = ARGV[2], ARGV[3]
local CLEAR_AT_MOST = 50
-- Bytes of an error that are sent: 16 * 1024 characters are kept (runs.ts). BullMQ keeps all: of so many bytes no more are read.
local ERROR_AT_MOST = 64 * 1024
local READ_AT_MOST = 1024 * 1024
local shortest, longest = tonumber(ARGV[4]), tonumber(ARGV[5])
local STAYS = { ok = tonumber(ARGV[6]), failed = tonumber(ARGV[7]) }
local KEEP = { tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]) }
local ids = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "LIMIT", 0, ARGV[1])
local out = { now, #ids < tonumber(ARGV[1]) and 0 or 1 }

local function say(id, what) out[#out + 1] = { id, what } end

local function later(id, ms) redis.call("ZADD", KEYS[1], whole(now + ms), id) end

-- What would hold Redis for too long here goes on in the next step, after all others that are due.
local function nextStep(id)
  later(id, 0)
  out[2] = 1
end

-- As `about` of lib/about.lua, but for what its end would need to put its task into the due index or to tell of it.
local function runOf(id, task)
  return {
    id = id, name = task, key = ours .. "r:" .. id, task = ours .. "t:" .. task, open = ours .. "open:" .. task,
    history = ours .. "hist:" .. task, failures = ours .. "fail:" .. task, stats = ours .. "s:" .. task, runs = KEYS[1],
    next = KEYS[2], job = bullPrefix .. id, journal = KEYS[5], expected = KEYS[6], prefix = ours .. "r:",
    output = ours .. "out:", stays = STAYS, keep = KEEP,
  }
end

-- The record of a run that is over stays for as long as its task keeps it; then the run is looked at once more.
local function expire(run, finished)
  local _, _, successesFor, failuresFor = keepOf(run, redis.call("HGET", run.task, "keep"))
  local set, age = run.history, successesFor
  if redis.call("ZSCORE", run.failures, run.id) then set, age = run.failures, failuresFor end
  if finished + age > now then return redis.call("ZADD", run.runs, finished + age + 1, run.id) end
  forget(run, set, { run.id })
end

-- Takes the job away, and with it the run's place here. A one-off task goes with its last run.
local function remove(id, jobKey, state, run)
  if state ~= "missing" and bullRemoveJob({ jobKey, KEYS[4] }, { id, "0", bullPrefix }) ~= 1 then
    return later(id, shortest)
  end
  redis.call("ZREM", KEYS[1], id)
  if state ~= "missing" or not run.task then say(id, "removed") end
  if not run.task then return end
  if run.finished then expire(runOf(id, run.task), run.finished) end
  local task = redis.call("HMGET", ours .. "t:" .. run.task, "once", "state", "open")
  if task[1] and task[2] == "finished" and (task[3] or "") == "" then
    say(run.task, "lingered")
    later(run.task, shortest)
  end
end

-- How a job that nobody settled ended, in our words.
local read = 0
local function outcomeOf(jobKey, id)
  if redis.call("ZSCORE", bullPrefix .. "completed", id) then return "succeeded" end
  local reason = redis.call("HGET", jobKey, "failedReason")
  read = read + #(reason or "")
  if reason and string.find(reason, "stalled more than", 1, true) then return "crashed", reason end
  return "failed", reason
end

-- Tasks of which a run is named: what ends after it is settled after it.
local named = {}

-- Ends a run that succeeded, where nothing follows that would have to be decided, and not more goes with it than one script may take.
local function settled(id, run, waits)
  if waits or named[run.task] or forgotten >= EXCESS_AT_MOST then return false end
  local about = runOf(id, run.task)
  finish(about, "succeeded", now, { stamps = stampsOf(about), survived = run.state ~= "queued" })
  return true
end

local function look(id)
  local runKey, jobKey = ours .. "r:" .. id, bullPrefix .. id
  local fields = redis.call("HMGET", runKey, "state", "of", "cancel", "finished", "made", "trace")
  local name, enqueued = string.match(fields[2] or "", "^(%S+) (%d+)")
  local run = {
    state = fields[1], task = name, enqueued = tonumber(enqueued or now), cancel = fields[3],
    finished = fields[4] and tonumber(fields[4]), made = fields[5],
  }
  local state = jobState(jobKey)
  local task = (run.state or run.task) and redis.call("HMGET", ours .. "t:" .. run.task, "gen", "open", "wait", "pending")
  local gone = not run.state or not task[1]
  local cancelled = run.cancel and run.state == "queued"
  -- Its job is to be removed, unless a worker holds it.
  local free = state == "live" and (gone or cancelled) and redis.call("EXISTS", jobKey .. ":lock") == 0
  local tooMuch = free and not fits(bullPrefix, id) or state == "done" and read >= READ_AT_MOST
  if tooMuch then return nextStep(id) end

  if gone then
    -- The task is gone; what is left of its run goes too, unless a worker holds it.
    redis.call("DEL", runKey, ours .. "out:" .. id)
    redis.call("ZREM", KEYS[5], id)
    if run.task then
      for _, set in ipairs({ "hist:", "fail:" }) do redis.call("ZREM", ours .. set .. run.task, id) end
      removeOpen(task and task[2], ours .. "t:" .. run.task, ours .. "open:" .. run.task, id)
    end
    return remove(id, jobKey, state, {})
  end
  if run.state == "final" then
    if state ~= "live" then return remove(id, jobKey, state, run) end
    -- Settled, and its worker has not ended the job yet: nobody has retried it.
    local atm = redis.call("HGET", jobKey, "atm") or "0"
    if not wasRetried(jobKey, run.made, fields[6], atm) then return later(id, shortest) end
    reopen(runOf(id, run.task), id, redis.call("HGET", runKey, "outcome") or "lost", now)
    redis.call("HSET", runKey, "state", "queued")
    later(id, shortest)
    return say(id, "reopened")
  end
  local waits = task[3] or task[4]
  -- Cancelled before a worker took it: nobody else will end it.
  if free and bullRemoveJob({ jobKey, KEYS[4] }, { id, "0", bullPrefix }) == 1 then state = "missing" end
  if state == "live" then
    -- Look less often the longer it takes: a backlog of queued jobs must not keep the reconciler busy. Where the task
    -- waits for the end, of which a plain worker tells nobody, look soon.
    local wait = math.min(longest, math.max(shortest, math.floor((now - run.enqueued) / 2)))
    if waits or run.cancel then wait = WAITED_FOR end
    return later(id, wait)
  end
  -- (Its job may be gone since an earlier look, of which nobody heard.)
  local outcome, reason = cancelled and "cancelled" or "lost", nil
  if state == "done" then outcome, reason = outcomeOf(jobKey, id) end
  -- However a run ends that someone wanted to end. (Plain workers start none, and do not hear of it: theirs end as they will.)
  if run.cancel and run.state ~= "queued" then outcome = "cancelled" end
  if outcome == "succeeded" and settled(id, run, waits) then return say(id, outcome) end
  -- Should nobody settle it: once more.
  later(id, shortest)
  named[run.task] = true
  out[#out + 1] = { id, "over", run.task, outcome, string.sub(reason or "", 1, ERROR_AT_MOST) }
end

-- Returns how many runs it took.
local function clear(id, most)
  local taken = clearRuns(id, ours .. id, KEYS[1], KEYS[5], KEYS[4], ours, bullPrefix, most, now + shortest)
  if redis.call("ZSCORE", KEYS[1], id) then nextStep(id) else say(id, "cleared") end
  return taken
end

local left = tonumber(ARGV[1])
for _, id in ipairs(ids) do
  local took = 1
  -- What is not looked at stays due.
  if left <= 0 then
    out[2] = 1
    break
  elseif string.sub(id, 1, 5) == "gone:" then
    local done, taken = pcall(clear, id, math.min(CLEAR_AT_MOST, left))
    if done then took = math.max(1, taken) else later(id, shortest) end
  elseif string.find(id, "@", 1, true) then
    -- A record that someone else has written to must not keep the others from their turn.
    if not pcall(look, id) then later(id, longest) end
  else
    local task = redis.call("HMGET", ours .. "t:" .. id, "state", "open")
    local finished = task[1] == "finished"
    if finished and (task[2] or "") == "" then
      say(id, "lingered")
      later(id, shortest)
    elseif finished then
      later(id, longest)
    else
      redis.call("ZREM", KEYS[1], id)
    end
  end
  left = left - took
end

afterEnds(KEYS[7], KEYS[2], KEYS[1])
return out
