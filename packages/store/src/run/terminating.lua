-- Marks an attempt as terminating: it reached its time limit, or was cancelled.
--
-- Returns: "OK" | "FENCED"
local state, fence = unpack(redis.call("HMGET", K.run, "state", "fence"))
if state ~= "running" or fence ~= A.fence then return "FENCED" end
redis.call("HSET", K.run, "state", "terminating")
return "OK"
