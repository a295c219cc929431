-- Copies times, counters, statistics and ledger of a task that moves to the new task that was put for it. The new task stays held.
--
-- A.seen: generation of the new task that the caller has read, "" none
-- A.fields: of the hash, not the definition's; A.gen, A.state: of the other task; A.copyOf: the beginning of the mark; A.stats: fields and values;
-- A.ledger, A.revisions: their entries, newest first
-- Returns: "OK" | "STALE" | "MISSING" | "TAKEN" (it is another task)
local TIMES = { "cursor", "nominal", "due", "fired", "pending", "wait", "pausedAt", "pausedBy", "pauseNote", "createdBy", "updatedBy", "set" }
local gen, moving, open = unpack(redis.call("HMGET", K.task, "gen", "moving", "open"))
if not gen then return "MISSING" end
if gen ~= A.seen then return "STALE" end
local mark = A.copyOf .. " " .. A.gen
if (open or "") ~= "" or not string.find(moving or "", A.copyOf .. " ", 1, true) then return "TAKEN" end
-- This generation was copied before. The other task may have been deleted since, and this copy may be incomplete.
if moving == mark then return "OK" end
local now = nowMs()
local next = math.max(tonumber(gen), tonumber(A.gen), tonumber(nowMicros()) - 1) + 1
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
local is = readTask(task)
is.moving = mark
moveTask(task, is, now, { state = A.state, gen = string.format("%d", next) })
setMoving(task, mark, now)
redis.call("HDEL", K.task, unpack(TIMES))
if #A.fields > 0 then redis.call("HSET", K.task, unpack(A.fields)) end
local set, revision, at = string.match(redis.call("HGET", K.task, "set") or "", "^(%S+) %S+ (%S+) (%d+)$")
if set then redis.call("ZADD", ours(F.keys.owned, set), revision == "-" and at or 0, A.name) end
redis.call("DEL", K.stats, K.ledger, K.revisions)
if #A.stats > 0 then redis.call("HSET", K.stats, unpack(A.stats)) end
if #A.ledger > 0 then redis.call("RPUSH", K.ledger, unpack(A.ledger)) end
if #A.revisions > 0 then redis.call("RPUSH", K.revisions, unpack(A.revisions)) end
local outcome, finished = lastOutcomeOf(K.stats)
if outcome then redis.call("ZADD", ours(F.keys.lastOutcome, outcome), string.format("%d", 0 - (finished or now)), A.name) end
wakeForMoved()
return "OK"
