-- Asks for the end of a run.
--
-- ARGV: 1 cancel channel, 2 who, 3 "1": only while it is queued
-- Returns: "OK" | "UNCHANGED" (asked before, or no longer queued) | "FINAL" | "GONE"
local state = redis.call("HGET", RUN.key, "state")
if not state then return "GONE" end
if state == "final" then return "FINAL" end
if ARGV[OWN + 3] == "1" and state ~= "queued" then return "UNCHANGED" end
if not cancelRun(RUN.key, RUN.runs, RUN.id, nowMs(), ARGV[OWN + 2], ARGV[OWN + 1], RUN.queue) then return "UNCHANGED" end
rearmAndWake(RUN.next, "r", RUN.runs, RUN.channel, RUN.queue)
return "OK"
