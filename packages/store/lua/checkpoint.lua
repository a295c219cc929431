-- Keeps what a handler saved for the next run of its task. Only the attempt that holds the run's fence may.
--
-- ARGV: 1 fence, 2 value as JSON
-- Returns: "OK" | "FENCED" | "GONE" | "FINAL"
local run, fence, value = about(1)
local was = redis.call("HMGET", run.key, "state", "fence")
if not was[1] or redis.call("EXISTS", run.task) == 0 then return "GONE" end
if was[1] == "final" then return "FINAL" end
if was[2] ~= fence then return "FENCED" end
redis.call("HSET", run.key, "checkpoint", value)
redis.call("HSET", run.stats, "checkpoint", value)
return "OK"
