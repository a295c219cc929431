-- Takes alerts off the list that were handed on, each by its line: what was told twice, or is sent twice, takes no other with it.
--
-- KEYS: 1 alerts, 2 next
-- ARGV: the lines
-- Returns: how many are left
for _, line in ipairs(ARGV) do redis.call("LREM", KEYS[1], 1, line) end
local left = redis.call("LLEN", KEYS[1])
if left == 0 then redis.call("ZREM", KEYS[2], "a") else redis.call("ZADD", KEYS[2], nowMs(), "a") end
return left
