-- Stores a handler's checkpoint for the next run of its task. Only the attempt that holds the run's fence may do so.
--
-- A.value: as JSON
-- Returns: "OK" | "FENCED" | "GONE" | "FINAL"
local state, fence = unpack(redis.call("HMGET", K.run, "state", "fence"))
if not state or redis.call("EXISTS", K.task) == 0 then return "GONE" end
if state == "final" then return "FINAL" end
if fence ~= A.fence then return "FENCED" end
redis.call("HSET", K.run, "checkpoint", A.value)
redis.call("HSET", K.stats, "checkpoint", A.value)
return "OK"
