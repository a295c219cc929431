-- Marks of the newest changes of a queue, or of its namespace, by subject: they tell a request that arrives late from a new one
-- (lib/once.lua). They stay for F.late after the newest change.

local function newestMark(subject) return redis.call("HGET", K.marks, subject) or "" end

local function markChange(subject, mark)
  redis.call("HSET", K.marks, subject, mark)
  redis.call("PEXPIRE", K.marks, F.late)
end
