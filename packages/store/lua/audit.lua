-- Makes the indexes say what the definitions say: a task that is due stands in its shard's due index, one whose run is over
-- does not wait for it any more. And no part of the queue is later than what these indexes begin with.
--
-- KEYS: 1 next, 2-9 the eight due indexes, 10 priorities, then the tasks
-- ARGV: 1 prefix of run keys, 2 number of tasks, 3 "1" where these are the last ones: then the parts are looked at, then for each task:
--       local name, shard
-- Returns: the number of tasks and parts that were put right
local now, mended = nowMs(), 0

-- Does all that waits do so for a run's end? Then it is looked at when that comes, and not before.
local function awaits(pending, open)
  for _, one in ipairs(cjson.decode(pending)) do
    if one.at and one.at > now then return false end
  end
  return (open or "") ~= ""
end

local function look(n)
  local taskKey, name, shard = KEYS[10 + n], ARGV[2 + 2 * n], tonumber(ARGV[3 + 2 * n])
  local task = redis.call("HMGET", taskKey, "state", "due", "pending", "wait", "priority", "nominal", "open")
  task[2] = task[2] or task[6]
  local run, delay = string.match(task[4] or "", "^(%S+) (%d+)$")
  local state = run and redis.call("HGET", ARGV[1] .. run, "state")
  local wrong = false
  if run and (not state or state == "final") then
    wrong = true
    task[2] = afterEnd(taskKey, now, delay)
    redis.call("HINCRBY", taskKey, "gen", 1)
    redis.call("HDEL", taskKey, "wait")
    setTimes(taskKey, task[2], task[2])
  end
  local indexed = redis.call("ZSCORE", KEYS[2 + shard], name)
  if task[1] == "scheduled" and not indexed and (task[2] or (task[3] and not awaits(task[3], task[7]))) then
    wrong = true
    setDue(KEYS[2 + shard], name, task[3] and now or task[2])
  elseif task[1] ~= "scheduled" and indexed then
    wrong = true
    setDue(KEYS[2 + shard], name, "")
  end
  if redis.call("HGET", KEYS[10], name) ~= task[5] then
    wrong = true
    setPriority(KEYS[10], name, task[5])
  end
  if wrong then
    mended = mended + 1
    rearm(KEYS[1], shard, KEYS[2 + shard])
  end
end

-- One that someone else has written to must not keep the others from being put right.
for n = 1, tonumber(ARGV[2]) do pcall(look, n) end
-- Too early is a look for nothing; too late, or not at all, and nobody comes.
local function lookAtPart(shard)
  local before = redis.call("ZSCORE", KEYS[1], shard)
  local head = redis.call("ZRANGE", KEYS[2 + shard], 0, 0, "WITHSCORES")[2]
  if not head or before and tonumber(before) <= tonumber(head) then return end
  mended = mended + 1
  rearm(KEYS[1], shard, KEYS[2 + shard])
end
if ARGV[3] == "1" then
  for shard = 0, 7 do pcall(lookAtPart, shard) end
end
return mended
