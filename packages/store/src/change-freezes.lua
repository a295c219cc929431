-- Stores a freeze, or lifts some, and counts the change.
--
-- A.id, A.freeze: as JSON, "" none is stored; A.lifted: ids
-- Returns: "OK" | "DONE" | "STALE" (lib/once.lua)
local before = cameBefore()
if before then return before end
if A.freeze ~= "" then
  redis.call("HSETNX", K.freezes, F.revision, nowMicros())
  redis.call("HSET", K.freezes, A.id, A.freeze)
end
if #A.lifted > 0 then redis.call("HDEL", K.freezes, unpack(A.lifted)) end
redis.call("HINCRBY", K.freezes, F.revision, 1)
-- The count is deleted with the last freeze; the next one starts from the clock, above what queues hold.
if redis.call("HLEN", K.freezes) == 1 then redis.call("DEL", K.freezes) end
markChange(A.subject, A.mark)
return "OK"
