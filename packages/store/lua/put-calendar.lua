-- Stores a shared calendar, or takes it away, and counts the change.
--
-- KEYS: 1 calendars
-- ARGV: 1 name, 2 entries as JSON ("" delete), 3 who
-- Returns: { "CREATED" | "UPDATED" | "UNCHANGED" | "DELETED" | "MISSING", revision of this calendar, or of all }
local stored = redis.call("HGET", KEYS[1], ARGV[1])
if ARGV[2] == "" then
  if not stored then return { "MISSING", "0" } end
  redis.call("HDEL", KEYS[1], ARGV[1])
  redis.call("HINCRBY", KEYS[1], "~revision", 1)
  -- The count goes with the last calendar; where one is put anew it goes on from the clock, above what tasks remember.
  if redis.call("HLEN", KEYS[1]) == 1 then redis.call("DEL", KEYS[1]) end
  return { "DELETED", "0" }
end
local revision, before = string.match(stored or "", "^(%d+) %d+ %S+ (.*)$")
if before == ARGV[2] then return { "UNCHANGED", revision } end
redis.call("HSETNX", KEYS[1], "~revision", nowMicros())
revision = redis.call("HINCRBY", KEYS[1], "~revision", 1)
local who = string.gsub(ARGV[3] == "" and "-" or ARGV[3], "%s", "_")
redis.call("HSET", KEYS[1], ARGV[1], table.concat({ string.format("%.0f", revision), nowMs(), who, ARGV[2] }, " "))
return { stored and "UPDATED" or "CREATED", string.format("%.0f", revision) }
