-- Reads one task with the time and the runs that a manual trigger must reckon with. Reads only.
--
-- KEYS: 1 task, 2 open, 3 history, 4 failures
-- ARGV: 1 prefix of job keys
-- Returns: { now, { field, value, … }, run in the way ("" none), "1" where it is open here, { id of a run that is over, … } }
local run, open, over = reckon(redis.call("HGET", KEYS[1], "open"), KEYS[2], KEYS[3], KEYS[4], ARGV[1])
return { nowMs(), redis.call("HGETALL", KEYS[1]), run, open, over }
