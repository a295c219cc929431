-- Resumes a paused task at the nominal time that the caller computed from what it read. Its runs and items whose wait after a crash ended
-- during the pause start now; beyond HELD_AT_MOST, workers find them by themselves (start-run.lua).
--
-- A.gen: the generation read; A.nominal, A.due: "" none; A.passedFrom, A.passedTo: first and last nominal time that is passed over,
-- "" none; A.mode: "live" or "shadow" from now on, "" as it is; A.backfill: id of the new backfill that runs what is passed over, "" none;
-- A.after: ms until it is checked; A.fields: field and value of it
-- Returns: "OK" | "STALE" | "MISSING"
local HELD_AT_MOST = 500
local gen, state, cursor, note, open = unpack(redis.call("HMGET", K.task, "gen", "state", "cursor", "pauseNote", "open"))
if not gen then return "MISSING" end
if gen ~= A.gen or state ~= "paused" then return "STALE" end
local now = nowMs()
local held = {}
for _, id in ipairs(openIds(open, K.open, HELD_AT_MOST - 1)) do
  local notBefore = redis.call("HGET", ours(F.keys.run, id), "notBefore")
  if notBefore and tonumber(notBefore) <= now then held[#held + 1] = id end
  local items = redis.pcall("HGET", ours(F.keys.items, id), "held")
  for index in string.gmatch(type(items) == "string" and items or "", "%d+") do held[#held + 1] = id .. "_" .. index end
end
-- Commands that fail on corrupt data come first, so that nothing is half done.
local ends = redis.call("HGET", K.stats, "ends")
if A.backfill ~= "" then redis.call("ZCARD", K.backfills) end
if A.passedFrom ~= "" then
  record(K.ledger, "paused", A.passedFrom, A.passedTo, now, A.by, "-", cursor, note or nil)
end
-- The cause of its failures may be fixed: their count restarts.
if ends then redis.call("HSET", K.stats, "ends", (string.gsub(ends, "^%S+", "0"))) end
local task = { task = K.task, name = A.name, shard = A.shard, due = K.due }
local mode = A.mode ~= "" and { "mode", A.mode } or nil
moveTask(task, readTask(task), now, { state = A.state, nominal = A.nominal, due = A.due, cursor = A.passedTo, fields = mode })
wakeForMoved()
if A.backfill ~= "" then
  redis.call("HSET", K.backfill, "created", now, unpack(A.fields))
  redis.call("ZADD", K.backfills, now + tonumber(A.after), A.backfill)
  rearmAndWake(F.parts.backfills, K.backfills)
  -- Calls that have read the backfills before this one was among them put nothing more (put-backfill.lua).
  redis.call("DEL", K.replaying)
end
-- A job that a worker holds now is not delayed, so it stays unchanged. A fault of a job never fails the resume.
for _, id in ipairs(held) do pcall(bullPromote, BULL, id) end
return "OK"
