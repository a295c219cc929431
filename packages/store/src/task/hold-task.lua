-- Holds a task for a move to another queue: nothing is claimed until the move ends (end-move.lua).
--
-- A.gen: the generation read; A.to: the other queue; A.by: "" unknown
-- Returns: "OK" | "STALE" | "MISSING"
local gen, state, moving = unpack(redis.call("HMGET", K.task, "gen", "state", "moving"))
if not gen then return "MISSING" end
if gen ~= A.gen or moving then return "STALE" end
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
moveTask(task, readTask(task), nowMs(), {
  state = state == "scheduled" and "paused" or nil, by = A.by, note = "moving to queue " .. A.to,
  fields = { "moving", "to " .. A.to .. " " .. state },
})
wakeForMoved()
return "OK"
