-- Sets the next times of tasks whose schedule has other times, because a shared calendar or the time zone data has changed. A task that
-- has changed since the caller read it is left as it is, to be read again.
--
-- A.revision: of the shared calendars
-- Each: gen: the generation read; nominal, dueAt: "" none; passedFrom, passedTo: first and last time that nobody owes, "" none
-- Returns: { "OK" | "STALE" | "ERROR <text>" of each }
local now = nowMs()

local function plan(item)
  local gen, calendars, cursor = unpack(redis.call("HMGET", item.task, "gen", "calendars", "cursor"))
  if gen ~= item.gen then return "STALE" end
  -- Commands that fail on corrupt data come first, so that nothing is half done.
  if item.passedFrom ~= "" then
    record(item.ledger, "superseded", item.passedFrom, item.passedTo, now, "replan", "-", cursor)
  end
  moveTask(item, readTask(item), now, { state = item.state, nominal = item.nominal, due = item.dueAt, cursor = item.passedTo })
  if calendars then redis.call("HSET", item.task, "calrev", A.revision) end
  for calendar in string.gmatch(calendars or "", "[^,]+") do
    redis.call("ZADD", ours(F.keys.planned, calendar), A.revision, item.name)
  end
  return "OK"
end

local out = {}
for item in eachItem do
  local answer, failed = tried(plan, item)
  out[#out + 1] = answer or "ERROR " .. failed
end
wakeForMoved()
return out
