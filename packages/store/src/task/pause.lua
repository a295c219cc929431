-- Pauses a task: its future occurrences are held, and runs that wait after a crash (start-run.lua); other runs that are queued go on.
--
-- A.gen: the generation read; A.by, A.note: "" none
-- Returns: "OK" | "STALE" | "UNCHANGED" (paused already: note and who stay) | "MISSING" | "FINISHED" | "FOREIGN <format>"
local state, version, gen = unpack(redis.call("HMGET", K.task, "state", "v", "gen"))
if not state then return "MISSING" end
if tonumber(version or 0) > F.format then return "FOREIGN " .. version end
if gen ~= A.gen and ONCE then return "STALE" end
if state == "paused" then return "UNCHANGED" end
if state == "finished" then return "FINISHED" end
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
moveTask(task, readTask(task), nowMs(), { state = "paused", by = A.by, note = A.note })
wakeForMoved()
return "OK"
