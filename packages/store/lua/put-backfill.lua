-- Stores a backfill, or ends it.
--
-- KEYS: 1 backfill, 2 backfills, 3 next
-- ARGV: 1 id, 2 state that it must be in ("" it must not exist), 3 look at it after (ms), 4 wake channel, 5 queue,
--       then field and value of what is set
-- Returns: "OK" | "MISSING" | "STALE"
local state = redis.call("HGET", KEYS[1], "state")
if (state or "") ~= ARGV[2] then return state and "STALE" or "MISSING" end
local now = nowMs()
if ARGV[2] == "" then redis.call("HSET", KEYS[1], "created", now) end
redis.call("HSET", KEYS[1], unpack(ARGV, 6))
redis.call("ZADD", KEYS[2], now + tonumber(ARGV[3]), ARGV[1])
rearmAndWake(KEYS[3], "b", KEYS[2], ARGV[4], ARGV[5])
return "OK"
