-- Repairs the indexes from the definitions: a task that is due is in its shard's due index, and one whose run is over
-- does not wait for it any more. A name without a definition is removed. No part of the queue is later than the first entry of its index.
--
-- A.last: "1" if these are the last tasks: then the parts are checked
-- Returns: the number of tasks and parts that were repaired
local now, mended = nowMs(), 0

-- Whether all pending occurrences wait for a run's end: then the task is checked at that end, and not before.
local function awaits(pending, open)
  for _, one in ipairs(cjson.decode(pending)) do
    if one.at and one.at > now then return false end
  end
  return (open or "") ~= ""
end

-- Removes a name without a definition, which foreign or lost writes have left, from the indexes that are read by name. Nothing is left of
-- a task that was deleted since its name was read.
local function forget(item)
  local removed = redis.call("ZREM", item.due, item.name) + redis.call("HDEL", K.priorities, item.name)
  for _, member in ipairs(redis.call("ZRANGEBYLEX", K.tasks, "[" .. item.name, "[" .. item.name .. " \255")) do
    removed = removed + redis.call("ZREM", K.tasks, member)
  end
  for _, state in ipairs({ "paused", "finished", "moving" }) do
    removed = removed + redis.call("ZREM", ours(F.keys.inState, state), item.name)
  end
  if removed > 0 then mended = mended + 1 end
end

local function check(item)
  item.due = K.dues[1 + item.shard]
  if redis.call("EXISTS", item.task) == 0 then return forget(item) end
  local state, due, pending, wait, priority, nominal, open, moving = unpack(redis.call("HMGET", item.task, "state", "due", "pending", "wait",
    "priority", "nominal", "open", "moving"))
  due = due or nominal or ""
  local run, delay = string.match(wait or "", "^(%S+) (%d+)$")
  local ended = run and (redis.call("HGET", ours(F.keys.run, run), "state") or "final") == "final"
  local wrong = false
  if ended then
    wrong = true
    due = afterEnd(item, now, delay)
    redis.call("HINCRBY", item.task, "gen", 1)
    redis.call("HDEL", item.task, "wait")
    setTimes(item, due, due, true)
  end
  local indexed = redis.call("ZSCORE", item.due, item.name)
  local active = state == "scheduled" and not moving
  if active and not indexed and (due ~= "" or pending and not awaits(pending, open)) or not active and indexed then
    wrong = true
    setCheck(item, nextCheck(state, due, pending, now, moving))
  end
  if moving and not redis.call("ZSCORE", ours(F.keys.inState, "moving"), item.name) then
    wrong = true
    setMoving(item, moving, now)
  end
  for _, other in ipairs({ "paused", "finished" }) do
    local set = ours(F.keys.inState, other)
    if state and (state == other) ~= (redis.call("ZSCORE", set, item.name) ~= false) then
      wrong = true
      if state == other then redis.call("ZADD", set, 0, item.name) else redis.call("ZREM", set, item.name) end
    end
  end
  if redis.call("HGET", K.priorities, item.name) ~= priority then
    wrong = true
    setPriority(item.name, priority)
  end
  if wrong then
    mended = mended + 1
    rearm(item.shard, item.due)
  end
end

-- Corrupt data in one task must not stop the repair of the others.
for item in eachItem do pcall(check, item) end
-- A part that is too early costs a check for nothing; one that is too late, or missing, is never checked.
local function checkPart(shard)
  local before = redis.call("ZSCORE", K.next, shard)
  local head = redis.call("ZRANGE", K.dues[1 + shard], 0, 0, "WITHSCORES")[2]
  if not head or before and tonumber(before) <= tonumber(head) then return end
  mended = mended + 1
  rearm(shard, K.dues[1 + shard])
end
if A.last == "1" then
  for shard = 0, F.shards - 1 do pcall(checkPart, shard) end
end
return mended
