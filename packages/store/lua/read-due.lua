-- Reads a bounded batch of due tasks, and of each the runs that its overlap policy must reckon with. Reads only.
-- Task, run and job keys are made here from the queue's own prefixes (what is due is known only here); all of them
-- are in the slot of KEYS[1].
--
-- KEYS: 1 due index of the shard
-- ARGV: 1 prefix of task keys, 2 prefix of the sets of open runs, 3 prefix of histories, 4 prefix of job keys,
--       5 due tasks to pass over, 6 batch size
-- Returns: { now, { local name, due, { field, value, … }, running ("1" | "0"), { id of a run that is over, … } }, … }
local now = nowMs()

-- Where runs may overlap there is nothing to reckon with.
local function mayOverlap(task)
  for i = 1, #task, 2 do
    if task[i] == "overlap" then return task[i + 1] == "allow" end
  end
  return false
end

local out = { now }
local due = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "WITHSCORES", "LIMIT", ARGV[5], ARGV[6])
for i = 1, #due, 2 do
  local name = due[i]
  local task = redis.call("HGETALL", ARGV[1] .. name)
  local running, over = "0", {}
  if not mayOverlap(task) then running, over = reckon(ARGV[2] .. name, ARGV[3] .. name, ARGV[4]) end
  out[#out + 1] = { name, due[i + 1], task, running, over }
end
return out
