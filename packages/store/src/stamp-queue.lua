-- Notes something about a queue, if it is registered.
--
-- K.notes: a hash of notes by queue
-- Returns: 1 if it is registered
if redis.call("HEXISTS", K.queues, A.queue) == 0 then return 0 end
redis.call("HSET", K.notes, A.queue, A.note)
return 1
