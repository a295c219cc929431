-- Makes the namespace's freezes hold in a queue, and has tasks checked again that the ones before held, some at a time.
--
-- A.from: revision of the copy to replace, "" there is none; A.revision, A.list: of the freezes, "" there are none
-- Returns: { "1" if it was copied, "0" if the queue has another copy than that, number of tasks left to check }: call it again in
--          both cases
local AT_ONCE = 500
if (redis.call("HGET", K.frozen, "rev") or "") ~= A.from then return { "0", 0 } end
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
return { "1", redis.call("ZCARD", K.held) }
