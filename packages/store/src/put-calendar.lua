-- Stores a shared calendar, or deletes it, and counts the change.
--
-- A.entries: as JSON, "" delete
-- Returns: { "CREATED" | "UPDATED" | "UNCHANGED" | "DELETED" | "MISSING", revision of this calendar, or of all }
local stored = redis.call("HGET", K.calendars, A.name)
if A.entries == "" then
  if not stored then return { "MISSING", "0" } end
  redis.call("HDEL", K.calendars, A.name)
  redis.call("HINCRBY", K.calendars, F.revision, 1)
  -- The count is deleted with the last calendar; the next one starts from the clock, above what tasks remember.
  if redis.call("HLEN", K.calendars) == 1 then redis.call("DEL", K.calendars) end
  return { "DELETED", "0" }
end
local revision, before = string.match(stored or "", "^(%d+) %d+ %S+ (.*)$")
if before == A.entries then return { "UNCHANGED", revision } end
redis.call("HSETNX", K.calendars, F.revision, nowMicros())
revision = redis.call("HINCRBY", K.calendars, F.revision, 1)
local who = string.gsub(A.by == "" and "-" or A.by, "%s", "_")
redis.call("HSET", K.calendars, A.name, table.concat({ string.format("%.0f", revision), nowMs(), who, A.entries }, " "))
return { stored and "UPDATED" or "CREATED", string.format("%.0f", revision) }
