-- Notes something about a queue, where it is registered.
--
-- KEYS: 1 queues, 2 hash of notes by queue
-- ARGV: 1 queue, 2 note
-- Returns: 1 where it is
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
return 1
