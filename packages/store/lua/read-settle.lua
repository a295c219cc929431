-- Reads what the end of a run is decided with. Reads only.
--
-- Returns: { now, { field, value, … } of the task, failures in a row, the run's details ("" gone) }
local run = about(1)
return { nowMs(), redis.call("HGETALL", run.task), redis.call("HGET", run.stats, "consecutiveFailures") or "0",
  redis.call("HGET", run.key, "info") or "" }
