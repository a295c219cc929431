-- Keeps what a handler saved for the next run of its task. Only the attempt that holds the run's fence may.
--
-- ARGV: 1 fence, 2 value as JSON
-- Returns: "OK" | "FENCED" | "GONE" | "FINAL"
local run = redis.call("HMGET", RUN.key, "state", "fence")
if not run[1] or redis.call("EXISTS", RUN.task) == 0 then return "GONE" end
if run[1] == "final" then return "FINAL" end
if run[2] ~= ARGV[OWN + 1] then return "FENCED" end
redis.call("HSET", RUN.key, "checkpoint", ARGV[OWN + 2])
redis.call("HSET", RUN.stats, "checkpoint", ARGV[OWN + 2])
return "OK"
