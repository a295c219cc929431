-- Makes the namespace's freezes hold in a queue, and has tasks checked again that the ones before held, some at a time.
--
-- A.revision, A.list: of the freezes, "" there are none
-- Returns: number of tasks left to check: call it again
local AT_ONCE = 500
if A.list == "" then
  redis.call("DEL", K.frozen)
else
  redis.call("HSET", K.frozen, "rev", A.revision, "list", A.list)
end
local now = string.format("%.0f", nowMs())
local shards = {}
local held = redis.call("ZPOPMIN", K.held, AT_ONCE)
for i = 1, #held, 2 do
  local shard, name = string.match(held[i], "^(%d+) (.*)$")
  local due = shard and ours(F.keys.due, shard)
  -- A task that was paused or deleted since has no check.
  if due and redis.call("ZADD", due, "XX", "LT", "CH", now, name) > 0 then shards[shard] = due end
end
for shard, due in pairs(shards) do rearmAndWake(shard, due) end
return redis.call("ZCARD", K.held)
