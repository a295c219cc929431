-- Stores the captured output of an attempt at a run or at an item alongside the run's record.
--
-- K.output: hash of the run's output, or of its items; A.field: the attempt's, or the item's
-- K.job, A.token: of an item: only the worker that has its job may do so; A.token "": any may
-- A.output: as JSON that begins with A.by, the worker's own mark, and A.number, of this text among those of this worker: an older one that
-- arrives late does nothing
-- Returns: 1, or 0 if it is not stored
if redis.call("EXISTS", K.run) == 0 or A.token ~= "" and not isHeldWith(K.job, A.token) then return 0 end
local by, number = string.match(redis.call("HGET", K.output, A.field) or "", '^{"by":"([^"]*)","number":(%d+)')
if by == A.by and tonumber(number) >= tonumber(A.number) then return 1 end
redis.call("HSET", K.output, A.field, A.output)
return 1
