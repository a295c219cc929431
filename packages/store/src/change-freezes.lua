-- Stores a freeze, or lifts some, and counts the change.
--
-- A.id, A.freeze: as JSON, "" none is stored; A.lifted: ids, separated by spaces
-- Returns: number of freezes that were lifted
local gone = 0
for id in string.gmatch(A.lifted, "%S+") do gone = gone + redis.call("HDEL", K.freezes, id) end
if A.freeze ~= "" then
  redis.call("HSETNX", K.freezes, F.revision, nowMicros())
  redis.call("HSET", K.freezes, A.id, A.freeze)
end
if A.freeze ~= "" or gone > 0 then redis.call("HINCRBY", K.freezes, F.revision, 1) end
-- The count is deleted with the last freeze; the next one starts from the clock, above what queues hold.
if redis.call("HLEN", K.freezes) == 1 then redis.call("DEL", K.freezes) end
return gone
