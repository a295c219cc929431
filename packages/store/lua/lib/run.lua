-- How a run ends. `run` is as `about` (lib/about.lua) makes it: its keys and its task's, and what is kept of it.

local FAILURE = { failed = true, ["timed-out"] = true, crashed = true, lost = true }
local SUCCESS = { succeeded = true, quota = true, ["nothing-to-do"] = true }

-- Whole numbers as text, each made once: Redis would do it anew for each command, and at several times the cost.
local texts = {}
local function whole(n)
  local text = texts[n] or string.format("%.0f", n)
  texts[n] = text
  return text
end

-- To a list of fields and values.
local function add(list, field, value)
  list[#list + 1] = field
  list[#list + 1] = value
end

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
  redis.call("ZADD", run.next, whole(now), "a")
  redis.call("PUBLISH", run.channel, table.concat({ run.queue, "a", whole(now) }, " "))
end

-- Records that this script has taken away.
local forgotten = 0
local function forget(run, set, ids)
  if #ids == 0 then return end
  forgotten = forgotten + #ids
  local keys = {}
  for i, id in ipairs(ids) do
    keys[2 * i - 1], keys[2 * i] = run.prefix .. id, run.output .. id
  end
  redis.call("DEL", unpack(keys))
  redis.call("ZREM", set, unpack(ids))
  redis.call("ZREM", run.journal, unpack(ids))
end

-- The newest of each kind are kept, and none that is too old. Where fewer are kept than were, so many go with each run that ends.
local EXCESS_AT_MOST = 500
local function prune(run, set, size, most, age, now)
  if size == 0 then return end
  -- What is too old and what is too much both begin with the oldest.
  local ids = redis.call("ZRANGEBYSCORE", set, "-inf", "(" .. whole(now - age), "LIMIT", 0, 100)
  local excess = math.min(size - most, EXCESS_AT_MOST)
  if excess > #ids then ids = redis.call("ZRANGE", set, 0, excess - 1) end
  forget(run, set, ids)
end

-- How many successes and failures, and for how long each. `given`: what the task says.
local function keepOf(run, given)
  if not given then return unpack(run.keep) end
  local keep = {}
  for n in string.gmatch(given, "%d+") do keep[#keep + 1] = tonumber(n) end
  for i = 1, 4 do keep[i] = keep[i] or run.keep[i] end
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

-- What statistics remember of a run's end. `survived`: an attempt counts as a crash until its end takes that back.
local function count(run, outcome, now, started, reopened, survived)
  local failed, nothing = FAILURE[outcome], outcome == "nothing-to-do"
  local sum, took = timeTaken(outcome, now, started, reopened)
  local was = redis.call("HMGET", run.stats, outcome, "consecutiveFailures", sum or "", "lastStart", "starts", "crashes")
  local set = { outcome, whole((tonumber(was[1]) or 0) + 1) }
  if started and was[4] then
    -- Where it only looked, the last run is the one before.
    local starts = startsOf(was[4], was[5])
    local left = startsAfter(starts, started, nothing)
    if #left == 0 then
      redis.call("HDEL", run.stats, "lastStart", "starts")
    elseif #left < #starts then
      add(set, "lastStart", left[1])
      add(set, "starts", table.concat(left, " ", 2))
    end
  end
  local nowText = whole(now)
  if nothing then
    add(set, "lastChecked", nowText)
  elseif outcome ~= "dropped" and (started or outcome ~= "cancelled") then
    -- What did not even start is not the last run either.
    add(set, "lastRun", run.id)
    add(set, "lastFinish", nowText)
    add(set, "lastOutcome", outcome)
  end
  if failed then
    add(set, "consecutiveFailures", whole((tonumber(was[2]) or 0) + 1))
  elseif SUCCESS[outcome] then
    add(set, "consecutiveFailures", "0")
    if not nothing then add(set, "lastSuccess", nowText) end
  end
  if sum then add(set, sum, whole((tonumber(was[3]) or 0) + took)) end
  if survived then
    add(set, "crashes", whole((tonumber(was[6]) or 0) - 1))
    add(set, "consecutiveCrashes", "0")
  end
  redis.call("HSET", run.stats, unpack(set))
end

-- When the task is looked at next; "" not before someone says so.
local function lookAt(run, now)
  local task = redis.call("HMGET", run.task, "state", "due", "pending", "nominal")
  local due = task[2] or task[4]
  if task[1] ~= "scheduled" then return "" end
  if task[3] then return whole(math.min(now, tonumber(due or now))) end
  return due or ""
end

local function rearmTask(run, now)
  setDue(run.due, run.name, lookAt(run, now))
  rearmAndWake(run.next, run.shard, run.due, run.channel, run.queue)
end

-- How many runs this script has ended how.
local ended = {}

-- Makes the run final: out of its task's open runs, into its history and the journal. A task that waits for this run has its
-- next time from here on, and what waits for its end goes on. After the last one of a script: `afterEnds`.
--
-- `more`, where there is something of it: `error`; `says`, what else the run's record says of its end, fields and values; `stamps`,
-- what its job says of it where no worker of ours did; `survived` (see `count`); `retried`: a retry takes the place of the next time.
local function finish(run, outcome, now, more)
  local nowText = whole(now)
  local task = redis.call("HMGET", run.task, "gen", "keep", "expect", "state", "wait", "pending", "once", "open")
  if not task[1] then
    -- Deleted while it ran: nothing of it is kept, and its job goes with the reconciler's next look.
    redis.call("DEL", run.key, run.output .. run.id)
    removeOpen(task[8], run.task, run.open, run.id)
    redis.call("ZADD", run.runs, nowText, run.id)
    rearmAndWake(run.next, "r", run.runs, run.channel, run.queue)
    return
  end
  local was = redis.call("HMGET", run.key, "started", "reopened", "notBefore", "attempts")
  local kept = { history = redis.call("ZCARD", run.history), failures = redis.call("ZCARD", run.failures) }
  -- Where someone else has written, the reads have failed by now, and nothing is half done.
  local says, stamps = more.says or {}, more.stamps or {}
  local started = was[1] or stamps.started
  count(run, outcome, now, started, was[2], more.survived)
  if started and not was[1] then add(says, "started", started) end
  if stamps.attempts and not was[4] then add(says, "attempts", stamps.attempts) end
  redis.call("HSET", run.key, "state", "final", "outcome", outcome, "finished", nowText, unpack(says))
  if was[3] then redis.call("HDEL", run.key, "notBefore") end
  removeOpen(task[8], run.task, run.open, run.id)
  ended[outcome] = (ended[outcome] or 0) + 1
  local failed = FAILURE[outcome]
  local set = failed and "failures" or "history"
  kept[set] = kept[set] + redis.call("ZADD", run[set], nowText, run.id)
  redis.call("ZADD", run.journal, nowText, run.id)
  local successes, failures, successesFor, failuresFor = keepOf(run, task[2])
  prune(run, run.history, kept.history, successes, successesFor, now)
  prune(run, run.failures, kept.failures, failures, failuresFor, now)
  local over = whole(now + (failed and run.stays.failed or run.stays.ok))
  redis.call("ZADD", run.runs, over, run.id)
  -- A one-off task goes with its run, by the run's record; of one that is not kept nobody else would know.
  if task[7] and redis.call("EXISTS", run.key) == 0 then redis.call("ZADD", run.runs, over, run.name) end
  if task[3] and SUCCESS[outcome] and task[4] == "scheduled" then
    redis.call("ZADD", run.expected, whole(now + task[3]), run.name)
    rearm(run.next, "e", run.expected)
  end
  local wait, delay = string.match(task[5] or "", "^(%S+) (%d+)$")
  if wait == run.id then
    redis.call("HDEL", run.task, "wait")
    -- Who read the task while it waited must not write that it has no next time.
    redis.call("HINCRBY", run.task, "gen", 1)
    if not more.retried then
      local due = afterEnd(run.task, now, delay)
      setTimes(run.task, due, due)
    end
  end
  if wait == run.id or task[6] then rearmTask(run, now) end
  if failed then alert(run, outcome == "crashed" and "crashed" or "failed", now, more.error) end
end

-- The queue counts how its runs end, and `next` says what `runs` begins with.
local function afterEnds(outcomesKey, nextKey, runsKey)
  -- No run fails to end because it cannot be counted.
  for outcome, times in pairs(ended) do redis.pcall("HINCRBY", outcomesKey, outcome, times) end
  rearm(nextKey, "r", runsKey)
end

-- What its job says of a run that no worker of ours ended.
local function stampsOf(run)
  local stamps = redis.call("HMGET", run.job, "processedOn", "ats")
  return { started = stamps[1], attempts = stamps[2] }
end
