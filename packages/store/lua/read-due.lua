-- Reads a bounded batch of due tasks, and of each the runs that its overlap policy must reckon with. Reads only.
-- Task, run and job keys are made here from the queue's own prefixes (what is due is known only here); all of them
-- are in the slot of KEYS[1].
--
-- KEYS: 1 due index of the shard
-- ARGV: 1 prefix of task keys, 2 prefix of the sets of open runs, 3 prefix of job keys, 4 batch size
-- Returns: { now, { local name, due, { field, value, … }, running ("1" | "0"), { id of a run that is over, … } }, … }
local now = nowMs()
local RECKON_AT_MOST = 200

-- Is a job of this task unfinished? Otherwise also: which runs are over but not yet settled.
local function reckon(openKey, jobPrefix)
  local over = {}
  local open = redis.call("ZRANGE", openKey, 0, RECKON_AT_MOST)
  for i, id in ipairs(open) do
    if i > RECKON_AT_MOST or jobState(jobPrefix .. id) == "live" then return "1", {} end
    over[i] = id
  end
  return "0", over
end

local out = { now }
local due = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "WITHSCORES", "LIMIT", 0, ARGV[4])
for i = 1, #due, 2 do
  local task = redis.call("HGETALL", ARGV[1] .. due[i])
  local running, over = reckon(ARGV[2] .. due[i], ARGV[3])
  out[#out + 1] = { due[i], due[i + 1], task, running, over }
end
return out
