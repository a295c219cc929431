-- Requests the cancellation of a run.
--
-- A.onlyQueued: "1" only while it is queued
-- Returns: "OK" | "UNCHANGED" (requested before, or no longer queued) | "FINAL" | "GONE"
local state = redis.call("HGET", K.run, "state")
if not state then return "GONE" end
if state == "final" then return "FINAL" end
if A.onlyQueued == "1" and state ~= "queued" then return "UNCHANGED" end
if not cancelRun(A.id, K.run, nowMs(), A.by) then return "UNCHANGED" end
rearmAndWake(F.parts.runs, K.runs)
return "OK"
