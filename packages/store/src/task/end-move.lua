-- Ends the hold of a task that moves, or has moved.
--
-- A.gen: the generation read
-- Returns: "OK" | "STALE" | "UNCHANGED" (it is not held) | "MISSING"
local state, moving, gen = unpack(redis.call("HMGET", K.task, "state", "moving", "gen"))
if not state then return "MISSING" end
if gen ~= A.gen then return "STALE" end
if not moving then return "UNCHANGED" end
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
local is = readTask(task)
is.moving = nil
moveTask(task, is, nowMs(), {})
setMoving(task, nil)
wakeForMoved()
return "OK"
