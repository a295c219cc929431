-- Removes an empty queue from the registry, unless a put has begun since the caller read its value there.
--
-- K.pastQueues: remembers it while tasks that were deleted from it can be put again
-- Returns: 1 if it was removed
if redis.call("HGET", K.queues, A.queue) ~= A.value then return 0 end
redis.call("HDEL", K.zones, A.queue)
redis.call("HDEL", K.audits, A.queue)
redis.pcall("ZADD", K.pastQueues, nowMs(), A.queue)
redis.call("PEXPIRE", K.pastQueues, F.deleted.ms)
local count = redis.pcall("ZCARD", K.pastQueues)
if type(count) == "number" and count > F.pastQueues then redis.call("ZPOPMIN", K.pastQueues) end
return redis.call("HDEL", K.queues, A.queue)
