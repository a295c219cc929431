-- Reads what a put is planned with. Reads only.
--
-- Returns: { now, marks of the newest changes, fields and values }
return { nowMs(), redis.call("HGETALL", K.marks) }
