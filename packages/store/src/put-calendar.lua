-- Stores a shared calendar, or deletes it, and counts the change.
--
-- A.entries: as JSON, "" delete
-- Returns: { "CREATED" | "UPDATED" | "UNCHANGED" | "DELETED" | "MISSING" | "STALE" | "DONE" (lib/once.lua), revision of this calendar }
local before = cameBefore()
if before then return { before, string.match(redis.call("HGET", K.calendars, A.name) or "0", "^%d+") } end
local stored = redis.call("HGET", K.calendars, A.name)
if A.entries == "" then
  if not stored then return { "MISSING", "0" } end
  redis.call("HDEL", K.calendars, A.name)
  redis.call("HINCRBY", K.calendars, F.revision, 1)
  -- The count is deleted with the last calendar; the next one starts from the clock, above what tasks remember.
  if redis.call("HLEN", K.calendars) == 1 then redis.call("DEL", K.calendars) end
  markChange(A.subject, A.mark)
  return { "DELETED", "0" }
end
local revision, entries = string.match(stored or "", "^(%d+) %d+ %S+ (.*)$")
if entries == A.entries then return { "UNCHANGED", revision } end
redis.call("HSETNX", K.calendars, F.revision, nowMicros())
revision = redis.call("HINCRBY", K.calendars, F.revision, 1)
local who = string.gsub(A.by == "" and "-" or A.by, "%s", "_")
redis.call("HSET", K.calendars, A.name, table.concat({ string.format("%d", revision), nowMs(), who, A.entries }, " "))
markChange(A.subject, A.mark)
return { stored and "UPDATED" or "CREATED", string.format("%d", revision) }
