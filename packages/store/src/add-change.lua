-- Adds an entry to a log, unless its sender has added it, or a later one, before.
--
-- K.sent: number of the newest entry of this sender; A.number: of this one; A.entry: JSON
-- Returns: 1; 0: it was added before
if tonumber(redis.call("GET", K.sent) or 0) >= tonumber(A.number) then return 0 end
redis.call("SET", K.sent, A.number, "PX", F.late)
redis.call("XADD", K.changes, "MAXLEN", "~", F.changes, "*", "at", nowMs(), "entry", A.entry)
return 1
