-- The end of a run. `run` holds keys of the run and its task (key: its record, job, task, open, history, failures, stats,
-- ledger, due), and id, name and shard of the task. Scripts receive it (RUN_ITEM in run-scripts.ts), or build it (runOf).
-- A: how long jobs stay (completedFor, failedFor, ms), how many (completedMost, failedMost), and the default retention of runs (successes, failures,
-- successesFor, failuresFor).

-- Whether a newer version wrote the run's record, so that this one must leave it alone. `v`: of the record, nil or false for the first format.
local function isNewerRun(v) return tonumber(v or 1) > F.runFormat end

-- A run that is known by its id. Without a `shard` it has no due index: its end must not move its task there. Keys that few runs need are
-- made when they are first read.
local RARE = { open = F.keys.open, failures = F.keys.failures, ledger = F.keys.ledger }
local KEYED = { __index = function(run, field) return RARE[field] and ours(RARE[field], run.name) end }
local function runOf(id, name, shard)
  return setmetatable({
    id = id, name = name, shard = shard, due = shard and ours(F.keys.due, shard), key = ours(F.keys.run, id), job = bullKey(id),
    task = ours(F.keys.task, name), history = ours(F.keys.history, name), stats = ours(F.keys.stats, name),
  }, KEYED)
end

-- Whole numbers as text, each made once: Redis would make it again for each command, and at several times the cost.
local texts = {}
local function whole(n)
  local text = texts[n] or string.format("%d", n)
  texts[n] = text
  return text
end

-- Changes to the indexes that all tasks of a queue share: score by member, false if it is removed. `afterEnds` writes
-- all of them.
local journal, runChecks = {}, {}
local function updateIndex(key, changes)
  local added, removed = {}, {}
  for member, score in pairs(changes) do
    if score then add(added, score, member) else removed[#removed + 1] = member end
  end
  if #added > 0 then redis.call("ZADD", key, unpack(added)) end
  if #removed > 0 then redis.call("ZREM", key, unpack(removed)) end
end

-- Fails, before anything is written, if these indexes hold foreign data.
local indexesChecked = false
local function checkIndexes()
  if indexesChecked then return end
  redis.call("ZCARD", K.journal)
  redis.call("ZCARD", K.runs)
  indexesChecked = true
end

-- Records that this script has deleted. `set`: that still lists them, nil none.
local forgotten = 0
local function forget(set, ids)
  if #ids == 0 then return end
  forgotten = forgotten + #ids
  local keys = {}
  for _, id in ipairs(ids) do
    for _, prefix in ipairs({ F.keys.run, F.keys.output, F.keys.items }) do keys[#keys + 1] = ours(prefix, id) end
  end
  -- Not DEL: a record may have 10,000 items.
  redis.call("UNLINK", unpack(keys))
  if set then redis.call("ZREM", set, unpack(ids)) end
  for _, id in ipairs(ids) do journal[id] = false end
end

-- Keeps the newest of each kind. Deletes at most EXCESS_AT_MOST records beyond the limit per run that ends, in case the limit was lowered.
-- `before`: how many there were before this run; `aged`: also deletes those that are too old.
local EXCESS_AT_MOST = 500
local function prune(set, before, size, most, age, now, aged)
  if size <= most and (before == 0 or not aged) then return end
  local oldest = now - age
  if size > most then
    local ids, popped = {}, redis.call("ZPOPMIN", set, math.min(size - most, EXCESS_AT_MOST))
    for i = 1, #popped, 2 do ids[#ids + 1] = popped[i] end
    forget(nil, ids)
    -- All others are newer.
    if tonumber(popped[#popped]) >= oldest then return end
  end
  if aged then forget(set, redis.call("ZRANGEBYSCORE", set, "-inf", "(" .. whole(oldest), "LIMIT", 0, 100)) end
end

-- The reconciler deletes each record when it is too old. If a task's limit was lowered since, ends of its runs delete them, once an hour at most.
local AGED_EACH = 3600000

-- Number of successes and failures that are kept, and for how long each. `given`: the task's `keep`.
local KEEP
local function keepOf(given)
  KEEP = KEEP or { tonumber(A.successes), tonumber(A.failures), tonumber(A.successesFor), tonumber(A.failuresFor) }
  if not given then return unpack(KEEP) end
  local keep = {}
  for n in string.gmatch(given, "%d+") do keep[#keep + 1] = tonumber(n) end
  for i = 1, 4 do keep[i] = keep[i] or KEEP[i] end
  return unpack(keep)
end

-- Starts of runs that may turn out to have had nothing to do, newest first, and the last start before them. Overlapping runs can make many:
-- at most STARTS are kept, the newest ones and the oldest.
local STARTS = 16
local LONG_STARTS = STARTS * #" 1700000000000"
local function startsOf(words)
  local starts = {}
  for start in string.gmatch(words, "%d+") do starts[#starts + 1] = start end
  if #starts > STARTS then table.remove(starts, #starts - 1) end
  return starts
end

-- Removes a run's start if it had nothing to do. Otherwise keeps the starts down to the first one before it.
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

-- Ms since the run's first attempt; `reopened`: if set, since then. Nil if it never started.
local function timeTaken(now, started, reopened)
  return started and math.max(0, now - math.max(started, reopened or started))
end

-- The sum that the time of a run with this outcome is added to; nil: none.
local function sumOf(outcome) return F.failures[outcome] and "failureMs" or F.successes[outcome] and "successMs" or nil end

-- Statistics of the run's task with its end: the fields to set, the kinds of its open incidents, if there are any, the outcome of the last
-- run until now, whether a run has failed, the sum that the run's time goes into, and that time, and the end of the last run, nil none. `survived`: an
-- attempt counts as a crash until its end takes that back. Reads only.
local function counted(run, outcome, now, started, reopened, survived)
  local failed, nothing, nowText = F.failures[outcome], outcome == "nothing-to-do", whole(now)
  local took = timeTaken(now, started, reopened)
  local sum = took and sumOf(outcome)
  local was = redis.call("HMGET", run.stats, "starts", "ends", outcome, "incidents")
  local times, ms = readCount(was[3])
  local set = { outcome, whole(times + 1) .. " " .. whole(ms + (sum and took or 0)) }
  if was[1] and (started or survived) then
    local attempts, crashes, inARow, starts = readStarts(was[1])
    if survived then crashes, inARow = whole(crashes - 1), "0" end
    local newest, former = string.match(starts, "^ (%d+) (%d+)")
    if not nothing and newest == started and former < newest then
      starts = " " .. newest .. " " .. former
    elseif started and (nothing or starts ~= " " .. started) then
      -- If it had nothing to do, the last start is the one before.
      starts = table.concat(startsAfter(startsOf(starts), started, nothing), " ")
      if starts ~= "" then starts = " " .. starts end
    end
    add(set, "starts", attempts .. " " .. crashes .. " " .. inARow .. starts)
  end
  local inARow, last, finished, lastMs, success, hasFailed = readEnds(was[2])
  local before, lastEnd = last ~= "-" and last or nil, tonumber(finished)
  if nothing then
    add(set, "lastChecked", nowText)
  elseif outcome ~= "dropped" and (started or outcome ~= "cancelled") then
    -- A run that never started is not the last run.
    add(set, "lastRun", run.id)
    last, finished, lastMs = outcome, nowText, took and whole(took) or "-"
  end
  if failed then
    inARow, hasFailed = whole(inARow + 1), "1"
    if inARow == "1" then add(set, "failing", nowText) end
  elseif F.successes[outcome] then
    inARow = "0"
    if not nothing then success = nowText end
  end
  add(set, "ends", table.concat({ inARow, last, finished, lastMs, success, hasFailed }, " "))
  return set, was[4], before, hasFailed == "1", sum, took, lastEnd
end

-- Tasks whose last run has ended in this script, by its outcome: changes of the set of that outcome.
local lasts = {}
local function moveIn(outcome, name, score)
  lasts[outcome] = lasts[outcome] or {}
  lasts[outcome][name] = score
end

-- Moves the task in the sets by outcome of its last run. `before`: that outcome until now.
local function moveLast(run, before, outcome, now, started)
  local nothing = outcome == "nothing-to-do"
  if nothing and before or outcome == "dropped" or outcome == "cancelled" and not started then return end
  if not nothing and before ~= outcome then moveIn(before or "nothing-to-do", run.name, false) end
  moveIn(outcome, run.name, whole(0 - now))
end

-- Number of successes from which on their mean is the usual duration.
local USUAL = 5

-- Time from which a run is late if it has not started, and the ms that it may take; nil: never, any. `watch`: its task's notStartedFor in ms, and
-- slowerThan in ms or percent of the usual; each "-" if there is none.
local function watchOf(run, watch)
  local within, most = string.match(watch, "^(%S+) (%S+)$")
  local of, info = unpack(redis.call("HMGET", run.key, "of", "info"))
  local enqueued = tonumber(string.match(of or "", "^%S+ (%d+)"))
  local due = tonumber(string.match(info or "", '"due":(%d+)') or string.match(info or "", '"nominal":(%d+)'))
  local trigger = string.match(info or "", '"trigger":"(%a+)"')
  local from = F.neverLate[trigger] and enqueued or due
  local percent = string.match(most, "^(%d+)%%$")
  if percent then
    local times, ms = 0, 0
    for _, field in ipairs(redis.call("HMGET", run.stats, "succeeded", "partial", "nothing-to-do")) do
      local more, longer = readCount(field)
      times, ms = times + more, ms + longer
    end
    most = times >= USUAL and ms / times * percent / 100
  end
  return from and tonumber(within) and from + tonumber(within), tonumber(most or nil)
end

local function raiseLate(run, at)
  incident({ kind = "late-start", task = run.name, at = at, run = run.id })
end

local function raiseSlow(run, at)
  incident({ kind = "slow", task = run.name, at = math.floor(at), run = run.id })
end

-- Number of runs that this script has ended, by outcome, and the ms that they took, by `successMs` and `failureMs`.
local ended = {}
-- Lists of BullMQ that their jobs may have joined.
local grown = {}

-- Makes the run final: moves it from its task's open runs to its history and the journal. A task that waits for this run
-- gets its next time, and its pending occurrences are checked. Call `afterEnds` after the last one of a script.
--
-- `more`, as far as there is any: `error`; `says`, what else the run's record says of its end, fields and values; `stamps`,
-- what its job says of it if no worker of ours did; `survived` (see `count`); `retried`: a retry takes the place of the next time; `was`: started,
-- reopened, notBefore, attempts and place of its record, if they are read already; `job`: ends the run's job with it: called before anything is
-- written, and if it returns false nothing is. Returns whether the run has ended.
local function finish(run, outcome, now, more)
  checkIndexes()
  local nowText = whole(now)
  local gen, keep, expect, state, wait, pending, once, open, watch = unpack(redis.call("HMGET", run.task, "gen", "keep", "expect",
    "state", "wait", "pending", "once", "open", "watch"))
  if not gen then
    if more.job then return false end
    -- Deleted while it ran: nothing of it is kept, and its job is removed with the reconciler's next check.
    redis.call("UNLINK", run.key, ours(F.keys.output, run.id), ours(F.keys.items, run.id))
    removeOpen(open, run.task, run.open, run.id)
    redis.call("ZADD", K.runs, nowText, run.id)
    leavePlace(run.name, run.id, true, now)
    rearmAndWake(F.parts.runs, K.runs)
    wakeForMoved()
    return true
  end
  local hasStarted, reopened, notBefore, attempts, place = unpack(more.was or redis.call("HMGET", run.key, "started", "reopened", "notBefore",
    "attempts", "place"))
  local says, stamps = more.says or {}, more.stamps or {}
  local started = hasStarted or stamps.started
  local lateAt, most
  -- Before this run counts among the usual ones.
  if watch then lateAt, most = watchOf(run, watch) end
  local counts, incidents, before, hasFailed, sum, took, lastEnd = counted(run, outcome, now, started, reopened, more.survived)
  local succeededBefore, failedBefore = redis.call("ZCARD", run.history), hasFailed and redis.call("ZCARD", run.failures) or 0
  -- If corrupt data is in the way, the reads have failed by now, and nothing is half done.
  if more.job and not more.job() then return false end
  redis.call("HSET", run.stats, unpack(counts))
  moveLast(run, before, outcome, now, started)
  if started and not hasStarted then add(says, "started", started) end
  if stamps.attempts and not attempts then add(says, "attempts", stamps.attempts) end
  redis.call("HSET", run.key, "state", "final", "outcome", outcome, "finished", nowText, unpack(says))
  if notBefore then redis.call("HDEL", run.key, "notBefore") end
  removeOpen(open, run.task, run.open, run.id)
  ended[outcome] = (ended[outcome] or 0) + 1
  if sum then ended[sum] = (ended[sum] or 0) + took end
  local failed = F.failures[outcome]
  if not failed then grown.completed = true end
  if not F.successes[outcome] then grown.failed = true end
  journal[run.id] = nowText
  -- In the order of ends, even if the clock went back.
  local set, newest = failed and run.failures or run.history, nil
  if (failed and failedBefore or succeededBefore) > 0 then newest = tonumber(redis.call("ZREVRANGE", set, "0", "0", "WITHSCORES")[2]) end
  local added = redis.call("ZADD", set, newest and newest > now and whole(newest + 1) or nowText, run.id)
  local successes, failures, successesFor, failuresFor = keepOf(keep)
  local aged = not lastEnd or math.floor(now / AGED_EACH) ~= math.floor(lastEnd / AGED_EACH)
  prune(run.history, succeededBefore, succeededBefore + (failed and 0 or added), successes, successesFor, now, aged)
  prune(run.failures, failedBefore, failedBefore + (failed and added or 0), failures, failuresFor, now, aged)
  local over = now + (failed and A.failedFor or A.completedFor)
  runChecks[run.id] = whole(over)
  -- A one-off task is deleted with the record of its run. If that is not kept, the task must be deleted here.
  if once and redis.call("EXISTS", run.key) == 0 then lingerUntil(run, over) end
  if expect and F.successes[outcome] and state == "scheduled" then expectBy(run, now + expect) end
  local awaited, delay
  if wait then awaited, delay = string.match(wait, "^(%S+) (%d+)$") end
  if awaited == run.id then
    redis.call("HDEL", run.task, "wait")
    -- A stale writer that read the task while it waited must not write that it has no next time.
    redis.call("HINCRBY", run.task, "gen", 1)
    if not more.retried then
      local due = afterEnd(run, now, delay)
      setTimes(run, due, due, true)
    end
  end
  if awaited == run.id or pending then recheck(run, now) end
  leavePlace(run.name, run.id, place, now)
  if failed then
    local kind = outcome == "crashed" and "crashed" or "failed"
    incident({ kind = kind, task = run.name, at = now, run = run.id, error = more.error or "" })
  end
  if watch and started then
    started = tonumber(started)
    local late = lateAt and started > lateAt
    local from = math.max(started, tonumber(reopened) or 0)
    local slow = most and now > from + most
    if F.successes[outcome] and incidents then recover(run.name, run.id, now, incidents, { ["late-start"] = late, slow = slow }) end
    if late then raiseLate(run, lateAt) end
    if slow then raiseSlow(run, from + most) end
  elseif F.successes[outcome] and incidents then
    recover(run.name, run.id, now, incidents, {})
  end
  return true
end

-- Lets the oldest jobs of a list of BullMQ be checked now, `excess` of those beyond the number that stays: the check removes them.
local MOST_JOBS = { completed = tonumber(A.completedMost), failed = tonumber(A.failedMost) }
local function checkExcess(list, excess, now)
  if excess <= 0 then return end
  local due = { K.runs, "XX", "LT" }
  for _, id in ipairs(redis.call("ZRANGE", bullKey(list), 0, excess - 1)) do add(due, now, id) end
  redis.call("ZADD", unpack(due))
end

-- Jobs in a list, as far as this script has counted them.
local listed = {}
local function excessOf(list) return (listed[list] or redis.call("ZCARD", bullKey(list))) - MOST_JOBS[list] end

-- Adds the ends to the queue's counts and indexes, and sets the times of the parts in `next`.
local function afterEnds()
  -- A run must end even if it cannot be counted.
  for outcome, times in pairs(ended) do redis.pcall("HINCRBY", K.outcomes, outcome, times) end
  updateIndex(K.journal, journal)
  updateIndex(K.runs, runChecks)
  -- One check removes many, so it begins when they are a tenth too many.
  for list in pairs(grown) do
    if excessOf(list) > MOST_JOBS[list] / 10 then checkExcess(list, 1, whole(nowMs())) end
  end
  for outcome, changes in pairs(lasts) do tried(updateIndex, ours(F.keys.lastOutcome, outcome), changes) end
  rearm(F.parts.runs, K.runs)
  wakeForMoved()
end
