-- Refuses from here on, in this slot, what callers with a lower number send for the subject: each script of theirs checks it first (assemble.ts).
if tonumber(redis.call("HGET", K.guards, A.subject) or 0) >= tonumber(A.number) then return end
redis.call("HSET", K.guards, A.subject, A.number)
redis.call("PEXPIRE", K.guards, F.late)
