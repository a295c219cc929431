-- Takes a backfill away.
--
-- KEYS: 1 backfill, 2 backfills, 3 next
-- ARGV: 1 id
-- Returns: 1
redis.call("DEL", KEYS[1])
redis.call("ZREM", KEYS[2], ARGV[1])
rearm(KEYS[3], "b", KEYS[2])
return 1
