-- Looks at the runs of a queue whose time has come. A run that no Carillon worker settled is named with what its job's
-- own state says of it, for settle-run.lua; a final run's job goes after its grace; one that was retried from outside is
-- open again.
--
-- KEYS: 1 runs, 2 next, 3 tasks, 4 repeat (BullMQ's)
-- ARGV: 1 at most, 2 the queue's prefix of ours, 3 BullMQ's key prefix, 4 shortest and 5 longest wait between looks (ms)
-- Returns: { now, number of runs looked at, { run id, "removed" | "reopened" } or
--            { run id, "over", local name, outcome, error } … }
local now = nowMs()
local ours, bullPrefix = ARGV[2], ARGV[3]
local shortest, longest = tonumber(ARGV[4]), tonumber(ARGV[5])
local ids = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "LIMIT", 0, ARGV[1])
local out = { now, #ids }

local function say(id, what) out[#out + 1] = { id, what } end

local function later(id, ms) redis.call("ZADD", KEYS[1], now + ms, id) end

-- Takes the job away, and with it the run's place here. A one-off task goes with its last run.
local function remove(id, jobKey, state, run)
  if state ~= "missing" and bullRemoveJob({ jobKey, KEYS[4] }, { id, "0", bullPrefix }) ~= 1 then
    return later(id, shortest)
  end
  redis.call("ZREM", KEYS[1], id)
  say(id, "removed")
  if not run.task then return end
  local taskKey = ours .. "t:" .. run.task
  local task = redis.call("HMGET", taskKey, "once", "state")
  if task[1] and task[2] == "finished" and redis.call("EXISTS", ours .. "open:" .. run.task) == 0 then
    for _, old in ipairs(redis.call("ZRANGE", ours .. "hist:" .. run.task, 0, -1)) do
      redis.call("DEL", ours .. "r:" .. old)
    end
    redis.call("DEL", taskKey, ours .. "hist:" .. run.task, ours .. "ledger:" .. run.task)
    redis.call("ZREM", KEYS[3], run.task)
  end
end

-- How a job that nobody settled ended, in our words.
local function outcomeOf(jobKey, id)
  if redis.call("ZSCORE", bullPrefix .. "completed", id) then return "succeeded" end
  local reason = redis.call("HGET", jobKey, "failedReason")
  if reason and string.find(reason, "stalled more than", 1, true) then return "crashed", reason end
  return "failed", reason
end

for _, id in ipairs(ids) do
  local runKey, jobKey = ours .. "r:" .. id, bullPrefix .. id
  local fields = redis.call("HMGET", runKey, "state", "task", "enqueued", "outcome")
  local run = { state = fields[1], task = fields[2], enqueued = tonumber(fields[3] or now) }
  local state = jobState(jobKey)
  local openKey = run.task and (ours .. "open:" .. run.task)
  local historyKey = run.task and (ours .. "hist:" .. run.task)

  if not run.state or redis.call("EXISTS", ours .. "t:" .. run.task) == 0 then
    -- The task is gone; what is left of its run goes too, unless a worker holds it.
    redis.call("DEL", runKey)
    if openKey then redis.call("ZREM", openKey, id) end
    if historyKey then redis.call("ZREM", historyKey, id) end
    remove(id, jobKey, state, {})
  elseif run.state == "final" then
    if state == "live" then
      redis.call("HSET", runKey, "state", "queued")
      redis.call("HDEL", runKey, "outcome", "finished")
      redis.call("ZREM", historyKey, id)
      redis.call("ZADD", openKey, now, id)
      later(id, shortest)
      say(id, "reopened")
    else
      remove(id, jobKey, state, run)
    end
  elseif state == "live" then
    -- Look less often the longer it takes: a backlog of queued jobs must not keep the reconciler busy. Where the task
    -- waits for the end, of which a plain worker tells nobody, look soon.
    local wait = math.min(longest, math.max(shortest, math.floor((now - run.enqueued) / 2)))
    if redis.call("HEXISTS", ours .. "t:" .. run.task, "wait") == 1 then wait = WAITED_FOR end
    later(id, wait)
  else
    local outcome, reason = "lost", nil
    if state == "done" then outcome, reason = outcomeOf(jobKey, id) end
    -- Should nobody settle it: once more.
    later(id, shortest)
    out[#out + 1] = { id, "over", run.task, outcome, reason or "" }
  end
end

rearm(KEYS[2], "r", KEYS[1])
return out
