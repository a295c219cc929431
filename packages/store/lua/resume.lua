-- Resumes a paused task at the nominal time that the caller computed from what it read.
--
-- KEYS: 1 task, 2 due index of its shard, 3 next, 4 ledger
-- ARGV: 1 local name, 2 shard, 3 generation read, 4 cursor, 5 nominal ("" none), 6 due, 7 wake channel, 8 queue,
--       9 first and 10 last nominal time passed over ("" none), 11 who, 12 state
-- Returns: "OK" | "STALE" | "MISSING"
local stored = redis.call("HMGET", KEYS[1], "gen", "state", "cursor")
if not stored[1] then return "MISSING" end
if stored[1] ~= ARGV[3] or stored[2] ~= "paused" then return "STALE" end
local now = nowMs()
redis.call("HINCRBY", KEYS[1], "gen", 1)
redis.call("HSET", KEYS[1], "updated", now)
redis.call("HDEL", KEYS[1], "pausedAt", "pausedBy", "pauseNote")
if ARGV[4] ~= "" then redis.call("HSET", KEYS[1], "cursor", ARGV[4]) end
redis.call("HSET", KEYS[1], "state", ARGV[12])
if ARGV[5] == "" then
  redis.call("HDEL", KEYS[1], "nominal", "due")
else
  redis.call("HSET", KEYS[1], "nominal", ARGV[5], "due", ARGV[6])
end
if ARGV[9] ~= "" then record(KEYS[4], "paused", ARGV[9], ARGV[10], now, ARGV[11], stored[3]) end
setDue(KEYS[2], ARGV[1], ARGV[6])
rearmAndWake(KEYS[3], ARGV[2], KEYS[2], ARGV[7], ARGV[8])
return "OK"
