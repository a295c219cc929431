-- Asks for the end of a run.
--
-- ARGV: 1 cancel channel, 2 who, 3 "1": only while it is queued
-- Returns: "OK" | "UNCHANGED" (asked before, or no longer queued) | "FINAL" | "GONE"
local run, channel, by, onlyQueued = about(1)
local state = redis.call("HGET", run.key, "state")
if not state then return "GONE" end
if state == "final" then return "FINAL" end
if onlyQueued == "1" and state ~= "queued" then return "UNCHANGED" end
if not cancelRun(run.key, run.runs, run.id, nowMs(), by, channel, run.queue) then return "UNCHANGED" end
rearmAndWake(run.next, "r", run.runs, run.channel, run.queue)
return "OK"
