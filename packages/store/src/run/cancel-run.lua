-- Requests the cancellation of a run.
--
-- A.seen: time at which the run was reopened, as the caller has read it, "" never; A.onlyQueued: "1" only while it is queued
-- Returns: "OK" | "STALE" | "UNCHANGED" (requested before, or no longer queued) | "FINAL" | "GONE"
local state, reopened = unpack(redis.call("HMGET", K.run, "state", "reopened"))
if not state then return "GONE" end
if (reopened or "") ~= A.seen then return "STALE" end
if state == "final" then return "FINAL" end
if A.onlyQueued == "1" and state ~= "queued" then return "UNCHANGED" end
if not cancelRun(A.id, K.run, nowMs(), A.by) then return "UNCHANGED" end
rearmAndWake(F.parts.runs, K.runs)
return "OK"
