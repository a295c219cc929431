-- Takes a task out of its set: its schedule never fires again, what waits is still enqueued, and the task is deleted once it has lingered.
--
-- A.gen: the generation read; A.state: `finished`, or `scheduled` if occurrences wait; A.set: name of its set, and the queue that it names;
-- A.passedFrom, A.passedTo: first and last owed time that it gives up, "" none
-- Returns: "OK" | "STALE" | "MISSING"
local gen, cursor = unpack(redis.call("HMGET", K.task, "gen", "cursor"))
if not gen then return "MISSING" end
if gen ~= A.gen and ONCE then return "STALE" end
local now = nowMs()
if A.passedFrom ~= "" then record(K.ledger, "superseded", A.passedFrom, A.passedTo, now, "removed", "-", cursor) end
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
local next = string.format("%d", tonumber(gen) + 1)
moveTask(task, readTask(task), now, {
  state = A.state, nominal = "", due = "", gen = next, cursor = A.passedTo, put = true,
  fields = { "rev", next, "set", A.set .. " - " .. string.format("%d", now) },
})
redis.call("HDEL", K.task, "wait")
redis.call("ZADD", K.owned, string.format("%d", now), A.name)
wakeForMoved()
return "OK"
