-- Removes delivered alerts from the list, each by its line, so that a resend removes no other alert.
--
-- Returns: the number of alerts left
for _, line in ipairs(A.lines) do redis.call("LREM", K.alerts, 1, line) end
local left = redis.call("LLEN", K.alerts)
if left == 0 then redis.call("ZREM", K.next, F.parts.alerts) else redis.call("ZADD", K.next, nowMs(), F.parts.alerts) end
return left
