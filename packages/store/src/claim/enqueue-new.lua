-- Creates the one-off task of "enqueue now" and its job in one step. The task is finished from the start, and is deleted with its run.
--
-- K.gone: runs left by a deleted task of that name
-- A.seen: newest mark of deleted tasks in this shard that the caller has seen
-- A.by: who asked, "" unknown; A.trace: "" none; A.template: the job's, as JSON in a list; A.owner, A.id: of the task; A.key to A.payload: see jobData; A.fields: field and value of the
-- definition
-- Returns: { "OK" | "DONE" | "TAKEN" | "STALE" (the mark is another one) | "LEFT" (those runs are to be cleared first) | "LIMITED" (see commit.lua; or it is early, or there are freezes: a node finds out whether one holds it) | "ERROR <text>", now, that mark }
local now = nowMs()
if redis.call("EXISTS", K.record) == 1 then return { "DONE", now } end
local newest = newestMark(F.deletedIn .. A.shard)
if newest ~= A.seen and ONCE then return { "STALE", now, newest } end
if redis.call("EXISTS", K.task) == 1 then return { "TAKEN", now } end
if redis.call("EXISTS", K.gone) == 1 then return { "LEFT", now } end
if now < tonumber(A.nominal) or redis.call("EXISTS", K.frozen) == 1 or not hasPlace(A.owner) then return { "LIMITED", now } end

checkOpen(nil, K.open, A.run)
bullQueue(K.bull)
-- The first run belongs to the generation that the task begins with.
local generation, enqueued, trace = nowMicros(), string.format("%d", now), A.trace ~= "" and A.trace or nil
local data = jobData(A, A.run, generation, enqueued, trace)
local failure = enqueue(bullTemplates(A.template, now)[1], A.run, data, K.job, trace)
if failure then return { "ERROR " .. failure, now } end
bullFinish()
redis.call("HSET", K.task, "gen", generation, "rev", generation, "state", "finished", "open", addOpen(nil, K.open, A.run, now),
  unpack(A.fields))
setAuthor(K.task, A.by, true)
local typeName, priority = unpack(redis.call("HMGET", K.task, "type", "priority"))
redis.call("ZADD", K.tasks, 0, indexed(A.name, typeName))
redis.call("ZADD", ours(F.keys.inState, "finished"), 0, A.name)
setPriority(A.name, priority)
recordRun(K.record, A.name, enqueued, A.node, A.details, "")
takePlace(A.owner, A.run, now)
redis.call("ZADD", K.runs, now + F.firstLook, A.run)
rearm(F.parts.runs, K.runs)
return { "OK", now }
