-- Ends the hold of a task that moves, or has moved: it is again in the state that it had.
--
-- Returns: "OK" | "UNCHANGED" (it is not held) | "MISSING"
local state, moving = unpack(redis.call("HMGET", K.task, "state", "moving"))
if not state then return "MISSING" end
if not moving then return "UNCHANGED" end
local was = string.match(moving, "(%S+)$")
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
-- An edit meanwhile may have finished it.
moveTask(task, readTask(task), nowMs(), { state = state == "paused" and was or nil })
redis.call("HDEL", K.task, "moving")
wakeForMoved()
return "OK"
