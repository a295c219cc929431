-- Raises the guard of a subject. From here on, scripts of callers with a lower number are refused in this slot: each checks the guard first
-- (assemble.ts).
if tonumber(redis.call("HGET", K.guards, A.subject) or 0) >= tonumber(A.number) then return end
redis.call("HSET", K.guards, A.subject, A.number)
redis.call("PEXPIRE", K.guards, F.late)
