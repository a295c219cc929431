-- Resumes a paused task at the nominal time that the caller computed from what it read.
--
-- KEYS: 1 task, 2 due index of its shard, 3 next, 4 ledger, 5 statistics, 6 expected, 7 runs
-- ARGV: 1 local name, 2 shard, 3 generation read, 4 cursor, 5 nominal ("" none), 6 due, 7 wake channel, 8 queue,
--       9 first and 10 last nominal time passed over ("" none), 11 who, 12 state,
--       13 look at ("" not before someone says so),
--       14 a finished task lingers for (ms) where it says nothing
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
setTimes(KEYS[1], ARGV[5], ARGV[6])
if ARGV[9] ~= "" then record(KEYS[4], "paused", ARGV[9], ARGV[10], now, ARGV[11], "-", stored[3]) end
-- What made it fail may be mended: the count begins anew.
if redis.call("EXISTS", KEYS[5]) == 1 then redis.call("HSET", KEYS[5], "consecutiveFailures", 0) end
local expect = redis.call("HGET", KEYS[1], "expect")
if expect then
  redis.call("ZADD", KEYS[6], now + expect, ARGV[1])
  rearm(KEYS[3], "e", KEYS[6])
end
if ARGV[12] == "finished" then
  redis.call("ZADD", KEYS[7], now + (redis.call("HGET", KEYS[1], "linger") or ARGV[14]), ARGV[1])
  rearm(KEYS[3], "r", KEYS[7])
end
setDue(KEYS[2], ARGV[1], ARGV[13])
rearmAndWake(KEYS[3], ARGV[2], KEYS[2], ARGV[7], ARGV[8])
return "OK"
