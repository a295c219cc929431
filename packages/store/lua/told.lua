-- Takes alerts off the list that were handed on.
--
-- KEYS: 1 alerts, 2 next
-- ARGV: 1 how many
-- Returns: how many are left
redis.call("LTRIM", KEYS[1], ARGV[1], -1)
local left = redis.call("LLEN", KEYS[1])
if left == 0 then redis.call("ZREM", KEYS[2], "a") else redis.call("ZADD", KEYS[2], nowMs(), "a") end
return left
