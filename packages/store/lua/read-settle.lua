-- Reads what the end of a run is decided with. Reads only.
--
-- Returns: { now, { field, value, … } of the task, failures in a row, the run's details ("" gone) }
return { nowMs(), redis.call("HGETALL", RUN.task), redis.call("HGET", RUN.stats, "consecutiveFailures") or "0",
  redis.call("HGET", RUN.key, "info") or "" }
