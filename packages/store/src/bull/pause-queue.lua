-- Pauses a BullMQ queue: its workers take no more jobs. Who did it and why is stored with BullMQ's own settings.
--
-- K.bull: BullMQ's keys, in the order of its pause
-- Returns: "OK" | "UNCHANGED" (it is paused already: who and note stay) | "DONE" | "STALE" (lib/once.lua)
local before = cameBefore()
if before then return before end
if bullIsPaused(K.meta) then return "UNCHANGED" end
local about = { at = nowMs() }
if A.by ~= "" then about.by = A.by end
if A.note ~= "" then about.note = A.note end
bullPause(K.bull, { "paused", "1" })
redis.call("HSET", K.meta, F.queuePause, cjson.encode(about))
markChange(A.subject, A.mark)
return "OK"
