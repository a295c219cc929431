-- Ends the hold of a task that moves, or has moved.
--
-- Returns: "OK" | "UNCHANGED" (it is not held) | "MISSING"
local state, moving = unpack(redis.call("HMGET", K.task, "state", "moving"))
if not state then return "MISSING" end
if not moving then return "UNCHANGED" end
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
local is = readTask(task)
is.moving = nil
moveTask(task, is, nowMs(), {})
setMoving(task, nil)
wakeForMoved()
return "OK"
