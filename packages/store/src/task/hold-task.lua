-- Holds a task for a move to another queue: nothing is claimed until the move ends (end-move.lua). Its state stays, and may change meanwhile.
--
-- A.gen: the generation read; A.mark: names the other place
-- Returns: "OK" | "STALE" | "MISSING"
local gen, moving = unpack(redis.call("HMGET", K.task, "gen", "moving"))
if not gen then return "MISSING" end
if gen ~= A.gen or moving then return "STALE" end
local now = nowMs()
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
local is = readTask(task)
is.moving = A.mark
moveTask(task, is, now, {})
setMoving(task, is.moving, now)
wakeForMoved()
return "OK"
