-- Removes an empty queue from the registry, unless a put has begun since the caller read its value there.
--
-- Returns: 1 if it was removed
if redis.call("HGET", K.queues, A.queue) ~= A.value then return 0 end
redis.call("HDEL", K.zones, A.queue)
redis.call("HDEL", K.audits, A.queue)
return redis.call("HDEL", K.queues, A.queue)
