-- Keeps what an attempt printed, beside its run's record.
--
-- KEYS: 1 run, 2 output
-- ARGV: 1 attempt, 2 the output as JSON
-- Returns: 1 where there is a record
if redis.call("EXISTS", KEYS[1]) == 0 then return 0 end
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
return 1
