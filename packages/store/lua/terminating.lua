-- An attempt is told to end: its time is up, or someone cancelled it.
--
-- ARGV: 1 fence
-- Returns: "OK" | "FENCED"
local run, fence = about(1)
local was = redis.call("HMGET", run.key, "state", "fence")
if was[1] ~= "running" or was[2] ~= fence then return "FENCED" end
redis.call("HSET", run.key, "state", "terminating")
return "OK"
