-- Clears the runs that a deleted task left, some at a time (lib/clear.lua).
--
-- KEYS: 1 runs that are gone, 2 runs, 3 next, 4 repeat (BullMQ's), 5 journal
-- ARGV: 1 the set's name among `runs`, 2 the queue's prefix of ours, 3 BullMQ's key prefix, 4 at most, 5 look again after (ms) at a
--       job that a worker holds
-- Returns: the number of runs taken; 0: none is left
local taken = clearRuns(ARGV[1], KEYS[1], KEYS[2], KEYS[5], KEYS[4], ARGV[2], ARGV[3], tonumber(ARGV[4]), nowMs() + ARGV[5])
rearm(KEYS[3], "r", KEYS[2])
return taken
