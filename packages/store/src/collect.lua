-- Stores what a destination of alerts was sent and collects.
--
-- A.destination; A.state: as JSON, "" forgets it; A.due: when it must be read again, ms
-- Returns: "OK" | "DONE" | "STALE" (lib/once.lua)
local before = cameBefore()
if before then return before end
if A.state == "" then
  redis.call("HDEL", K.collected, A.destination)
  redis.call("ZREM", K.digests, A.destination)
else
  redis.call("ZADD", K.digests, A.due, A.destination)
  redis.call("HSET", K.collected, A.destination, A.state)
end
markChange(A.subject, A.mark)
rearmAndWake(F.parts.digests, K.digests)
return "OK"
