-- An attempt is told to end: its time is up, or someone cancelled it.
--
-- ARGV: 1 fence
-- Returns: "OK" | "FENCED"
local run = redis.call("HMGET", RUN.key, "state", "fence")
if run[1] ~= "running" or run[2] ~= ARGV[OWN + 1] then return "FENCED" end
redis.call("HSET", RUN.key, "state", "terminating")
return "OK"
