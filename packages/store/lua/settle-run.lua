-- An attempt ends: the run becomes final, or is queued again for its next attempt. Only the attempt that holds the
-- run's fence may say so. Without a fence the reconciler speaks, for a job whose end nobody told us; only where that job
-- is over or gone.
--
-- KEYS: 1 run, 2 open, 3 history, 4 runs, 5 next, 6 task, 7 due index of its shard, 8 job
-- ARGV: 1 run id, 2 fence ("" the reconciler), 3 outcome ("" another attempt is left), 4 error, 5 result as JSON,
--       6 prefix of run keys, 7 runs kept a task, 8 the job stays for (ms), 9 attempts that BullMQ counts as made,
--       10 local name, 11 shard, 12 wake channel, 13 queue
-- Returns: "OK" | "FENCED" (another attempt took over) | "GONE" | "FINAL" | "LIVE"
local run = redis.call("HMGET", KEYS[1], "state", "fence", "outcome")
if not run[1] then return "GONE" end
-- The same word once more: its answer was lost, and it was sent again.
if run[1] == "final" then return run[2] == ARGV[2] and run[3] == ARGV[3] and "OK" or "FINAL" end
if ARGV[2] == "" then
  if jobState(KEYS[8]) == "live" then return "LIVE" end
  local stamps = redis.call("HMGET", KEYS[8], "processedOn", "ats")
  if stamps[1] then redis.call("HSETNX", KEYS[1], "started", stamps[1]) end
  if stamps[2] then redis.call("HSETNX", KEYS[1], "attempts", stamps[2]) end
elseif run[2] ~= ARGV[2] then
  return "FENCED"
end
local now = nowMs()
if ARGV[4] ~= "" then redis.call("HSET", KEYS[1], "error", ARGV[4]) end
if ARGV[3] == "" then
  redis.call("HSET", KEYS[1], "state", "queued")
  return "OK"
end
if ARGV[9] ~= "" then redis.call("HSET", KEYS[1], "made", ARGV[9]) end
if ARGV[5] ~= "" then redis.call("HSET", KEYS[1], "result", ARGV[5]) end
finish({
  key = KEYS[1], id = ARGV[1], open = KEYS[2], history = KEYS[3], prefix = ARGV[6], task = KEYS[6], name = ARGV[10],
  due = KEYS[7], next = KEYS[5], shard = ARGV[11], channel = ARGV[12], queue = ARGV[13],
}, ARGV[3], now, tonumber(ARGV[7]))
redis.call("ZADD", KEYS[4], now + tonumber(ARGV[8]), ARGV[1])
rearm(KEYS[5], "r", KEYS[4])
return "OK"
