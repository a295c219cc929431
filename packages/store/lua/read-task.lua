-- Reads one task with the time and the runs that a manual trigger must reckon with. Reads only.
--
-- KEYS: 1 task, 2 open, 3 history
-- ARGV: 1 prefix of job keys
-- Returns: { now, { field, value, … }, running ("1" | "0"), { id of a run that is over, … } }
local running, over = reckon(KEYS[2], KEYS[3], ARGV[1])
return { nowMs(), redis.call("HGETALL", KEYS[1]), running, over }
