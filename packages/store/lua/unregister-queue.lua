-- Takes an empty queue out of the registry, unless a put has begun since the caller looked.
--
-- KEYS: 1 queues, 2 zones, 3 audits
-- ARGV: 1 queue, 2 its value in the registry when the caller looked
-- Returns: 1 where it went
if redis.call("HGET", KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call("HDEL", KEYS[2], ARGV[1])
redis.call("HDEL", KEYS[3], ARGV[1])
return redis.call("HDEL", KEYS[1], ARGV[1])
