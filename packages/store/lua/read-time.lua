-- The time that all scripts go by.
--
-- KEYS: 1 any key of the queue
-- Returns: milliseconds
return nowMs()
