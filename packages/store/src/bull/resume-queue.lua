-- Resumes a BullMQ queue.
--
-- K.bull: BullMQ's keys, in the order of its resume; K.paused: the list that an older BullMQ put jobs aside in
-- Returns: the number of jobs that are still there: call again; -1: it is not paused; "DONE" | "STALE" (lib/once.lua)
local before = cameBefore()
if before then return before end
if not bullIsPaused(K.meta) and redis.call("EXISTS", K.paused) == 0 then return -1 end
redis.call("HDEL", K.meta, F.queuePause)
local left = bullPause(K.bull, { "resumed", "1" })
markChange(A.subject, A.mark)
return left
