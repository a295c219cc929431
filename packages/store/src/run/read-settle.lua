-- Reads the input for deciding the end of a run. Reads only.
--
-- Returns: { now, { field, value, … } of the task, failures in a row, the run's details ("" none are left) }
return { nowMs(), redis.call("HGETALL", K.task), failuresInARow(K.stats),
  redis.call("HGET", K.run, "info") or "" }
