-- Deletes a task: from here on it never fires, and jobs still queued for it do nothing. The records of its runs are set
-- aside, and cleared in bounded steps (lib/clear.lua). They never affect a new task of that name: open runs are cleared
-- before one is stored (put.lua, enqueue-new.lua).
--
-- K.left, A.names: where its runs are set aside, and the names of these among K.runs; each in the order open, history, failures
-- A.gen: the generation read, "" none; A.mark: of this deletion (lib/once.lua); A.change: as of put.lua; A.which: "finished" only if nothing is left for it to do;
-- "held" only while it is held for a move and has no open runs; "any"
-- Returns: 1 (0: there was none, or something is left; 2: it is held for a move) | "STALE"
local CLEAR_AFTER = 10000 -- whoever deletes does it at once, if it is there
local now = nowMs()
local tags, calendars, open, state, gen, moving, created, rev, author, inSet, mode = unpack(redis.pcall("HMGET", K.task, "tags", "calendars",
  "open", "state", "gen", "moving", "created", "rev", "updatedBy", "set", "mode"))
if (gen or "") ~= A.gen and ONCE then return "STALE" end
if A.which ~= "held" and moving then return 2 end
if A.which == "held" and (not moving or (open or "") ~= "") then return 0 end
if A.which == "finished" then
  if state ~= "finished" or (open or "") ~= "" then return 0 end
  -- It was put again meanwhile and has finished again, so it lingers once more. (The reconciler repeats its reports.)
  local at = redis.call("ZSCORE", K.runs, A.name)
  if at and tonumber(at) > now + F.lookAgain then return 0 end
end
-- The entry has the type, which may differ from the hash if that is corrupt.
local named = redis.call("ZRANGEBYLEX", K.tasks, "[" .. A.name, "(" .. A.name .. "!")
if redis.call("EXISTS", K.task, K.ledger, K.stats) == 0 and #named == 0 then return 0 end
local lastOutcome = tried(lastOutcomeOf, K.stats)
-- Steps that may fail come first: as long as the task exists, they can be repeated. Corrupt data in place of the sets is deleted too.
for i, set in ipairs({ K.open, K.history, K.failures }) do
  if redis.call("EXISTS", set) == 1 then
    redis.call("RENAME", set, K.left[i])
    redis.call("ZADD", K.runs, now + CLEAR_AFTER, A.names[i])
  end
end
local definition = tried(definitionOf, K.task)
if definition and mode then definition.mode = mode end
redis.call("DEL", K.task, K.ledger, K.stats, K.observed)
-- Only what a person deletes can be put again.
local kept = A.which == "any" and definition and definition.type and not definition.once
if not (kept and tried(keepDeleted, K.revisions, now, author, A.name, definition, state, A.change)) then redis.call("DEL", K.revisions) end
-- The put of a new task may still arrive a second time.
if now - (createdAt(created, rev) or now) < F.late then markChange(F.deletedIn .. A.shard, A.mark) end
if open and isRun(open) then
  -- A single open run is in the hash, so a set of that name is foreign.
  redis.call("DEL", K.left[1])
  redis.call("ZADD", K.left[1], now, open)
  redis.call("ZADD", K.runs, now + CLEAR_AFTER, A.names[1])
end
for tag in string.gmatch(tags or "", "[^,]+") do redis.pcall("ZREM", ours(F.keys.tagged, tag), A.name) end
noteTags(tags)
if inSet then redis.pcall("ZREM", ours(F.keys.owned, string.match(inSet, "^%S*")), A.name) end
for calendar in string.gmatch(calendars or "", "[^,]+") do redis.pcall("ZREM", ours(F.keys.planned, calendar), A.name) end
if #named > 0 then redis.call("ZREM", K.tasks, unpack(named)) end
redis.call("ZREM", ours(F.keys.lastOutcome, lastOutcome or "nothing-to-do"), A.name)
redis.call("ZREM", ours(F.keys.waiting, ownerOf(A.name)), A.shard .. " " .. A.name)
unindexTask({ task = K.task, name = A.name, shard = A.shard, due = K.due })
-- Its alerts and backfills. Both lists are short, or empty.
local ending = string.match(A.name, "/.*") .. '"'
local found = false
for i, line in ipairs(redis.pcall("LRANGE", K.alerts, 0, 999)) do
  -- Decodes only lines that may match: decoding all takes much longer.
  local readable, alert = pcall(cjson.decode, string.find(line, ending, 1, true) and line)
  if readable and type(alert) == "table" and alert.task == A.name then
    -- Marks it, to remove all in one pass: LREM for each would search the whole list each time.
    found = true
    redis.pcall("LSET", K.alerts, i - 1, "")
  end
end
if found then redis.call("LREM", K.alerts, 0, "") end
if redis.call("EXISTS", K.alerts) == 0 then redis.call("ZREM", K.next, F.parts.alerts) end
for _, id in ipairs(redis.pcall("ZRANGE", K.backfills, 0, 999)) do
  local backfill = ours(F.keys.backfill, id)
  if redis.pcall("HGET", backfill, "task") == A.name then
    redis.call("DEL", backfill)
    redis.call("ZREM", K.backfills, id)
  end
end
rearm(F.parts.backfills, K.backfills)
wakeForMoved()
return 1
