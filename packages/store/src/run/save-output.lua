-- Stores the captured output of an attempt alongside its run's record.
--
-- A.output: as JSON
-- Returns: 1 if there is a record
if redis.call("EXISTS", K.run) == 0 then return 0 end
redis.call("HSET", K.output, A.attempt, A.output)
return 1
