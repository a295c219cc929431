-- Adds an entry to the change log.
--
-- A.entry: JSON
-- Returns: its id
return redis.call("XADD", K.changes, "MAXLEN", "~", F.changes, "*", "at", nowMs(), "entry", A.entry)
