-- An attempt ends: the run becomes final, or is queued again for its next attempt. Only the attempt that holds the
-- run's fence may say so.
--
-- KEYS: 1 run, 2 open, 3 history, 4 runs, 5 next
-- ARGV: 1 run id, 2 fence, 3 outcome ("" another attempt is left), 4 error, 5 result as JSON, 6 prefix of run keys,
--       7 runs kept a task, 8 the job stays for (ms), 9 attempts that BullMQ counts as made
-- Returns: "OK" | "FENCED" (another attempt took over) | "GONE" | "FINAL"
local run = redis.call("HMGET", KEYS[1], "state", "fence", "outcome")
if not run[1] then return "GONE" end
-- The same word once more: its answer was lost, and it was sent again.
if run[1] == "final" then return run[2] == ARGV[2] and run[3] == ARGV[3] and "OK" or "FINAL" end
if run[2] ~= ARGV[2] then return "FENCED" end
local now = nowMs()
if ARGV[4] ~= "" then redis.call("HSET", KEYS[1], "error", ARGV[4]) end
if ARGV[3] == "" then
  redis.call("HSET", KEYS[1], "state", "queued")
  return "OK"
end
redis.call("HSET", KEYS[1], "made", ARGV[9])
if ARGV[5] ~= "" then redis.call("HSET", KEYS[1], "result", ARGV[5]) end
finish(KEYS[1], KEYS[2], KEYS[3], ARGV[6], ARGV[1], ARGV[3], now, tonumber(ARGV[7]))
redis.call("ZADD", KEYS[4], now + tonumber(ARGV[8]), ARGV[1])
rearm(KEYS[5], "r", KEYS[4])
return "OK"
