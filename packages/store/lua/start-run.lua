-- An attempt starts: written before the handler runs. The fence grows with each attempt, so that a worker that was
-- thought dead cannot settle a run that another one has taken over.
--
-- KEYS: 1 run, 2 task
-- ARGV: 1 worker, 2 pid, 3 host, 4 attempt (from 1)
-- Returns: { "OK", fence, now } | { "GONE" } (the task was deleted) | { "FINAL", outcome }
local run = redis.call("HMGET", KEYS[1], "state", "outcome")
if not run[1] or redis.call("EXISTS", KEYS[2]) == 0 then return { "GONE" } end
if run[1] == "final" then return { "FINAL", run[2] } end
local now = nowMs()
local fence = redis.call("HINCRBY", KEYS[2], "fence", 1)
redis.call("HSETNX", KEYS[1], "started", now)
redis.call("HSET", KEYS[1], "state", "running", "fence", fence, "worker", ARGV[1], "pid", ARGV[2], "host", ARGV[3],
  "attempts", ARGV[4], "attemptStarted", now)
return { "OK", fence, now }
