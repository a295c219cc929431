-- Stores a freeze, or lifts some, and counts the change. The newest freezes that ended are kept for a day.
--
-- A.id, A.freeze: as JSON, "" none is stored; A.lifted: ids, also of quotas
-- Returns: "OK" | "DONE" | "STALE" (lib/once.lua)
local MOST_THAWED = 50
local before = cameBefore()
if before then return before end
if A.freeze ~= "" then
  redis.call("HSETNX", K.freezes, F.revision, nowMicros())
  redis.call("HSET", K.freezes, A.id, A.freeze)
end
if #A.lifted > 0 then
  local ended = redis.call("HMGET", K.freezes, unpack(A.lifted))
  redis.call("HDEL", K.freezes, unpack(A.lifted))
  for i, freeze in ipairs(ended) do
    if freeze and string.sub(A.lifted[i], 1, 1) ~= "~" then
      redis.call("LPUSH", K.thawed, string.format("%d ", nowMs()) .. freeze)
    end
  end
  redis.call("LTRIM", K.thawed, 0, MOST_THAWED - 1)
  redis.call("PEXPIRE", K.thawed, 86400000)
end
redis.call("HINCRBY", K.freezes, F.revision, 1)
-- The count is deleted with the last freeze; the next one starts from the clock, above what queues hold.
if redis.call("HLEN", K.freezes) == 1 then redis.call("DEL", K.freezes) end
markChange(A.subject, A.mark)
return "OK"
