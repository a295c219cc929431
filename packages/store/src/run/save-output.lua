-- Stores the captured output of an attempt at a run or at an item alongside the run's record.
--
-- K.output: hash of the run's output, or of its items; A.field: the attempt's, or the item's
-- K.job, A.token: of an item: only the worker that has its job may do so; A.token "": any may
-- A.output: as JSON
-- Returns: 1, or 0 if it is not stored
if redis.call("EXISTS", K.run) == 0 or A.token ~= "" and not isHeldWith(K.job, A.token) then return 0 end
redis.call("HSET", K.output, A.field, A.output)
return 1
