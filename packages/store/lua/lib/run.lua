-- One run and what belongs to it, as runs.ts hands it to each script about a run.
--
-- KEYS: 1 run, 2 task, 3 open, 4 history, 5 failures, 6 statistics, 7 runs, 8 next, 9 due index of the task's shard, 10 job,
--       11 journal, 12 ledger, 13 alerts, 14 expected
-- ARGV: 1 run id, 2 local name, 3 shard, 4 prefix of run keys, 5 prefix of output keys, 6 wake channel, 7 queue,
--       8 a completed job stays for, 9 a failed job stays for (ms), 10 successes and 11 failures kept a task,
--       12 successes and 13 failures are kept for (ms)
local RUN = {
  key = KEYS[1], task = KEYS[2], open = KEYS[3], history = KEYS[4], failures = KEYS[5], stats = KEYS[6], runs = KEYS[7],
  next = KEYS[8], due = KEYS[9], job = KEYS[10], journal = KEYS[11], ledger = KEYS[12], alerts = KEYS[13],
  expected = KEYS[14],
  id = ARGV[1], name = ARGV[2], shard = ARGV[3], prefix = ARGV[4], output = ARGV[5], channel = ARGV[6], queue = ARGV[7],
  stays = { ok = tonumber(ARGV[8]), failed = tonumber(ARGV[9]) },
  keep = { ARGV[10], ARGV[11], ARGV[12], ARGV[13] },
}
-- Where a script's own arguments begin.
local OWN = 13

local FAILURE = { failed = true, ["timed-out"] = true, crashed = true, lost = true }
local SUCCESS = { succeeded = true, quota = true, ["nothing-to-do"] = true }

-- Tells the nodes of something that alerts are about. Bounded: where no node is alive the oldest go.
local ALERTS_CAP = 10000
local function alert(kind, now, error)
  redis.call("RPUSH", RUN.alerts, cjson.encode({
    kind = kind, task = RUN.name, run = RUN.id, at = now, error = string.sub(error or "", 1, 1024),
  }))
  redis.call("LTRIM", RUN.alerts, -ALERTS_CAP, -1)
  redis.call("ZADD", RUN.next, now, "a")
  redis.call("PUBLISH", RUN.channel, table.concat({ RUN.queue, "a", string.format("%.0f", now) }, " "))
end

local function forget(set, ids)
  for _, id in ipairs(ids) do
    redis.call("DEL", RUN.prefix .. id, RUN.output .. id)
    redis.call("ZREM", set, id)
    redis.call("ZREM", RUN.journal, id)
  end
end

-- The newest of each kind are kept, and none that is too old. Where fewer are kept than were, so many go with each run that ends.
local EXCESS_AT_MOST = 500
local function prune(set, most, age, now)
  local excess = math.min(redis.call("ZCARD", set) - most, EXCESS_AT_MOST)
  if excess > 0 then forget(set, redis.call("ZRANGE", set, 0, excess - 1)) end
  forget(set, redis.call("ZRANGEBYSCORE", set, "-inf", "(" .. string.format("%.0f", now - age), "LIMIT", 0, 100))
end

-- How many successes and failures, and for how long each. `given`: what the task says.
local function keepOf(given)
  local keep = {}
  if given then for n in string.gmatch(given, "%d+") do keep[#keep + 1] = n end else keep = RUN.keep end
  return tonumber(keep[1]), tonumber(keep[2]), tonumber(keep[3]), tonumber(keep[4])
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

-- What statistics remember of a run's end. `started`: of its first attempt.
local function count(outcome, now, started)
  local failed, took = FAILURE[outcome], started and math.max(0, now - started) or 0
  local nothing = outcome == "nothing-to-do"
  local ms = failed and "failureMs" or "successMs"
  local was = redis.call("HMGET", RUN.stats, outcome, "consecutiveFailures", ms, "lastStart", "starts")
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
      redis.call("HDEL", RUN.stats, "lastStart", "starts")
    elseif #left < #starts then
      write("lastStart", left[1])
      write("starts", table.concat(left, " ", 2))
    end
  end
  if nothing then
    write("lastChecked", now)
  elseif outcome ~= "dropped" and (started or outcome ~= "cancelled") then
    -- What did not even start is not the last run either.
    write("lastRun", RUN.id)
    write("lastFinish", now)
    write("lastOutcome", outcome)
  end
  if failed then
    write("consecutiveFailures", (tonumber(was[2]) or 0) + 1)
  elseif SUCCESS[outcome] then
    write("consecutiveFailures", 0)
    if not nothing then write("lastSuccess", now) end
  end
  if started and (failed or SUCCESS[outcome]) then write(ms, (tonumber(was[3]) or 0) + took) end
  redis.call("HSET", RUN.stats, unpack(set))
end

-- When the task is looked at next; "" not before someone says so.
local function lookAt(now)
  local task = redis.call("HMGET", RUN.task, "state", "due", "pending", "nominal")
  local due = task[2] or task[4]
  if task[1] ~= "scheduled" then return "" end
  if task[3] then return string.format("%.0f", math.min(now, tonumber(due or now))) end
  return due or ""
end

local function rearmTask(now)
  setDue(RUN.due, RUN.name, lookAt(now))
  rearmAndWake(RUN.next, RUN.shard, RUN.due, RUN.channel, RUN.queue)
end

-- Makes the run final: out of its task's open runs, into its history and the journal. A task that waits for this run has its
-- next time from here on, and what waits for its end goes on. `retried`: a retry takes that place.
local function finish(outcome, now, error, retried)
  local task = redis.call("HMGET", RUN.task, "gen", "keep", "expect", "state", "wait", "pending", "once")
  if not task[1] then
    -- Deleted while it ran: nothing of it is kept, and its job goes with the reconciler's next look.
    redis.call("DEL", RUN.key, RUN.output .. RUN.id)
    removeOpen(RUN.task, RUN.open, RUN.id)
    redis.call("ZADD", RUN.runs, now, RUN.id)
    rearmAndWake(RUN.next, "r", RUN.runs, RUN.channel, RUN.queue)
    return
  end
  redis.call("HSET", RUN.key, "state", "final", "outcome", outcome, "finished", now)
  redis.call("HDEL", RUN.key, "notBefore")
  removeOpen(RUN.task, RUN.open, RUN.id)
  local failed = FAILURE[outcome]
  redis.call("ZADD", failed and RUN.failures or RUN.history, now, RUN.id)
  redis.call("ZADD", RUN.journal, now, RUN.id)
  -- Before it may be forgotten.
  local started = redis.call("HGET", RUN.key, "started")
  local successes, failures, successesFor, failuresFor = keepOf(task[2])
  prune(RUN.history, successes, successesFor, now)
  prune(RUN.failures, failures, failuresFor, now)
  local over = now + (failed and RUN.stays.failed or RUN.stays.ok)
  redis.call("ZADD", RUN.runs, over, RUN.id)
  -- A one-off task goes with its run, by the run's record; of one that is not kept nobody else would know.
  if task[7] and redis.call("EXISTS", RUN.key) == 0 then redis.call("ZADD", RUN.runs, over, RUN.name) end
  count(outcome, now, started)
  if task[3] and SUCCESS[outcome] and task[4] == "scheduled" then
    redis.call("ZADD", RUN.expected, now + task[3], RUN.name)
    rearm(RUN.next, "e", RUN.expected)
  end
  local wait, delay = string.match(task[5] or "", "^(%S+) (%d+)$")
  if wait == RUN.id then
    redis.call("HDEL", RUN.task, "wait")
    -- Who read the task while it waited must not write that it has no next time.
    redis.call("HINCRBY", RUN.task, "gen", 1)
    if not retried then
      local due = afterEnd(RUN.task, now, delay)
      setTimes(RUN.task, due, due)
    end
  end
  if wait == RUN.id or task[6] then rearmTask(now) end
  if failed then alert(outcome == "crashed" and "crashed" or "failed", now, error) end
  rearm(RUN.next, "r", RUN.runs)
end
