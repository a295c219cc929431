-- An attempt starts: written before the handler runs. The fence grows with each attempt, so that a worker that was
-- thought dead cannot settle a run that another one has taken over.
--
-- A final run is started again in two cases. Its worker died between settling it and ending the job: BullMQ has not
-- counted that attempt as made, and there is nothing to do. Or the job had ended and was retried from outside: the run is open
-- again.
--
-- KEYS: 1 run, 2 task, 3 open, 4 history
-- ARGV: 1 run id, 2 worker, 3 pid, 4 host, 5 attempt (from 1), 6 attempts that BullMQ counts as made
-- Returns: { "OK", fence, now } | { "GONE" } (the task was deleted) | { "FINAL", outcome }
local run = redis.call("HMGET", KEYS[1], "state", "outcome", "made")
if not run[1] or redis.call("EXISTS", KEYS[2]) == 0 then return { "GONE" } end
local now = nowMs()
if run[1] == "final" then
  if run[3] and tonumber(ARGV[6]) <= tonumber(run[3]) then return { "FINAL", run[2] } end
  redis.call("HDEL", KEYS[1], "outcome", "finished", "error", "result", "made")
  redis.call("ZREM", KEYS[4], ARGV[1])
  redis.call("ZADD", KEYS[3], now, ARGV[1])
end
local fence = redis.call("HINCRBY", KEYS[2], "fence", 1)
if fence == 1 then
  -- From the clock on, as the generation: a task that was deleted and put again goes on above its old fences.
  fence = nowMicros()
  redis.call("HSET", KEYS[2], "fence", fence)
end
redis.call("HSETNX", KEYS[1], "started", now)
redis.call("HSET", KEYS[1], "state", "running", "fence", fence, "worker", ARGV[2], "pid", ARGV[3], "host", ARGV[4],
  "attempts", ARGV[5], "attemptStarted", now)
return { "OK", fence, now }
