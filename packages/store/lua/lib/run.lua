-- How a run ends. `run` is what RUN of lib/about.lua is: its keys and its task's, and what is kept of it.

local FAILURE = { failed = true, ["timed-out"] = true, crashed = true, lost = true }
local SUCCESS = { succeeded = true, quota = true, ["nothing-to-do"] = true }

-- The first so many bytes, and no part of a character.
local function shortened(text, most)
  if #text <= most then return text end
  return (string.gsub(string.sub(text, 1, most), "[\192-\255][\128-\191]*$", ""))
end

-- Tells the nodes of something that alerts are about. Bounded: where no node is alive the oldest go.
local ALERTS_CAP = 10000
local function alert(run, kind, now, error)
  redis.call("RPUSH", run.alerts, cjson.encode({
    kind = kind, task = run.name, run = run.id, at = now, error = shortened(error or "", 1024),
  }))
  redis.call("LTRIM", run.alerts, -ALERTS_CAP, -1)
  redis.call("ZADD", run.next, now, "a")
  redis.call("PUBLISH", run.channel, table.concat({ run.queue, "a", string.format("%.0f", now) }, " "))
end

-- Records that this script has taken away.
local forgotten = 0
local function forget(run, set, ids)
  forgotten = forgotten + #ids
  for _, id in ipairs(ids) do
    redis.call("DEL", run.prefix .. id, run.output .. id)
    redis.call("ZREM", set, id)
    redis.call("ZREM", run.journal, id)
  end
end

-- The newest of each kind are kept, and none that is too old. Where fewer are kept than were, so many go with each run that ends.
local EXCESS_AT_MOST = 500
local function prune(run, set, most, age, now)
  local excess = math.min(redis.call("ZCARD", set) - most, EXCESS_AT_MOST)
  if excess > 0 then forget(run, set, redis.call("ZRANGE", set, 0, excess - 1)) end
  forget(run, set, redis.call("ZRANGEBYSCORE", set, "-inf", "(" .. string.format("%.0f", now - age), "LIMIT", 0, 100))
end

-- How many successes and failures, and for how long each. `given`: what the task says.
local function keepOf(run, given)
  local keep = {}
  for n in string.gmatch(given or "", "%d+") do keep[#keep + 1] = tonumber(n) end
  for i = 1, 4 do keep[i] = keep[i] or tonumber(run.keep[i]) end
  return unpack(keep)
end

-- Starts of runs that may turn out to have had nothing to do, newest first, and the last one before them: `lastStart` and, of those
-- before it, `starts`. At most so many, as where runs overlap; the newest, and the oldest.
local STARTS = 16
local function startsOf(last, before)
  local starts = { last or nil }
  for start in string.gmatch(before or "", "%d+") do starts[#starts + 1] = start end
  if #starts > STARTS then table.remove(starts, #starts - 1) end
  return starts
end

-- Those without that of a run that had nothing to do; or, where it did something, without all that are older but one.
local function startsAfter(starts, started, nothing)
  local left, found = {}, false
  for _, start in ipairs(starts) do
    if nothing and start == started and not found then
      found = true
    else
      left[#left + 1] = start
      if not nothing and tonumber(start) < tonumber(started) then break end
    end
  end
  return left
end

-- Which sum a run's time goes into, and how long it took. `started`: its first attempt; `reopened`: then its time counts anew.
-- Nil where its time does not count.
local function timeTaken(outcome, now, started, reopened)
  local sum = FAILURE[outcome] and "failureMs" or SUCCESS[outcome] and "successMs"
  if sum and started then return sum, math.max(0, now - math.max(started, reopened or started)) end
end

-- What statistics remember of a run's end.
local function count(run, outcome, now, started, reopened)
  local failed, nothing = FAILURE[outcome], outcome == "nothing-to-do"
  local sum, took = timeTaken(outcome, now, started, reopened)
  local was = redis.call("HMGET", run.stats, outcome, "consecutiveFailures", sum or "", "lastStart", "starts")
  local set = { outcome, (tonumber(was[1]) or 0) + 1 }
  local function write(field, value)
    set[#set + 1] = field
    set[#set + 1] = value
  end
  if started and was[4] then
    -- Where it only looked, the last run is the one before.
    local starts = startsOf(was[4], was[5])
    local left = startsAfter(starts, started, nothing)
    if #left == 0 then
      redis.call("HDEL", run.stats, "lastStart", "starts")
    elseif #left < #starts then
      write("lastStart", left[1])
      write("starts", table.concat(left, " ", 2))
    end
  end
  if nothing then
    write("lastChecked", now)
  elseif outcome ~= "dropped" and (started or outcome ~= "cancelled") then
    -- What did not even start is not the last run either.
    write("lastRun", run.id)
    write("lastFinish", now)
    write("lastOutcome", outcome)
  end
  if failed then
    write("consecutiveFailures", (tonumber(was[2]) or 0) + 1)
  elseif SUCCESS[outcome] then
    write("consecutiveFailures", 0)
    if not nothing then write("lastSuccess", now) end
  end
  if sum then write(sum, (tonumber(was[3]) or 0) + took) end
  redis.call("HSET", run.stats, unpack(set))
end

-- When the task is looked at next; "" not before someone says so.
local function lookAt(run, now)
  local task = redis.call("HMGET", run.task, "state", "due", "pending", "nominal")
  local due = task[2] or task[4]
  if task[1] ~= "scheduled" then return "" end
  if task[3] then return string.format("%.0f", math.min(now, tonumber(due or now))) end
  return due or ""
end

local function rearmTask(run, now)
  setDue(run.due, run.name, lookAt(run, now))
  rearmAndWake(run.next, run.shard, run.due, run.channel, run.queue)
end

-- Makes the run final: out of its task's open runs, into its history and the journal. A task that waits for this run has its
-- next time from here on, and what waits for its end goes on. `retried`: a retry takes that place.
local function finish(run, outcome, now, error, retried)
  local task = redis.call("HMGET", run.task, "gen", "keep", "expect", "state", "wait", "pending", "once")
  if not task[1] then
    -- Deleted while it ran: nothing of it is kept, and its job goes with the reconciler's next look.
    redis.call("DEL", run.key, run.output .. run.id)
    removeOpen(run.task, run.open, run.id)
    redis.call("ZADD", run.runs, now, run.id)
    rearmAndWake(run.next, "r", run.runs, run.channel, run.queue)
    return
  end
  redis.call("HSET", run.key, "state", "final", "outcome", outcome, "finished", now)
  redis.call("HDEL", run.key, "notBefore")
  removeOpen(run.task, run.open, run.id)
  local failed = FAILURE[outcome]
  redis.call("ZADD", failed and run.failures or run.history, now, run.id)
  redis.call("ZADD", run.journal, now, run.id)
  -- Before it may be forgotten.
  local times = redis.call("HMGET", run.key, "started", "reopened")
  local successes, failures, successesFor, failuresFor = keepOf(run, task[2])
  prune(run, run.history, successes, successesFor, now)
  prune(run, run.failures, failures, failuresFor, now)
  local over = now + (failed and run.stays.failed or run.stays.ok)
  redis.call("ZADD", run.runs, over, run.id)
  -- A one-off task goes with its run, by the run's record; of one that is not kept nobody else would know.
  if task[7] and redis.call("EXISTS", run.key) == 0 then redis.call("ZADD", run.runs, over, run.name) end
  count(run, outcome, now, times[1], times[2])
  if task[3] and SUCCESS[outcome] and task[4] == "scheduled" then
    redis.call("ZADD", run.expected, now + task[3], run.name)
    rearm(run.next, "e", run.expected)
  end
  local wait, delay = string.match(task[5] or "", "^(%S+) (%d+)$")
  if wait == run.id then
    redis.call("HDEL", run.task, "wait")
    -- Who read the task while it waited must not write that it has no next time.
    redis.call("HINCRBY", run.task, "gen", 1)
    if not retried then
      local due = afterEnd(run.task, now, delay)
      setTimes(run.task, due, due)
    end
  end
  if wait == run.id or task[6] then rearmTask(run, now) end
  if failed then alert(run, outcome == "crashed" and "crashed" or "failed", now, error) end
  rearm(run.next, "r", run.runs)
end

-- What its job says of a run that no worker of ours ended.
local function readStamps(run)
  local stamps = redis.call("HMGET", run.job, "processedOn", "ats")
  if stamps[1] then redis.call("HSETNX", run.key, "started", stamps[1]) end
  if stamps[2] then redis.call("HSETNX", run.key, "attempts", stamps[2]) end
end

-- An attempt counts as a crash until its end takes that back.
local function takeCrashBack(run)
  redis.call("HINCRBY", run.stats, "crashes", -1)
  redis.call("HSET", run.stats, "consecutiveCrashes", 0)
end
