-- Reads the clock that all scripts use.
--
-- K.any: any key of the queue
-- Returns: milliseconds
return nowMs()
