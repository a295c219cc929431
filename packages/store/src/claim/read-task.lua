-- Reads one task with the time and the runs that a manual trigger must reckon with. Reads only.
--
-- Returns: { now, { field, value, … }, run in the way ("" none), "1" if it is open here, since when workers have been at it, { id of a run that is over, … }, { revision and list of
--            the freezes, if there are any } }
local run, open, over = reckon(redis.call("HGET", K.task, "open"), K.open, K.history, K.failures)
return { nowMs(), redis.call("HGETALL", K.task), run, open, run ~= "" and begunAt(run) or "", over, redis.call("HMGET", K.frozen, "rev", "list") }
