-- Pauses a task: its future occurrences are held; runs that are queued go on.
--
-- KEYS: 1 task, 2 due index of its shard, 3 next, 4 expected
-- ARGV: 1 local name, 2 shard, 3 note, 4 who, 5 newest format that the caller knows
-- Returns: "OK" | "UNCHANGED" (paused already: note and who stay) | "MISSING" | "FINISHED" | "FOREIGN <format>"
local state = redis.call("HGET", KEYS[1], "state")
if not state then return "MISSING" end
local version = redis.call("HGET", KEYS[1], "v")
if tonumber(version or 0) > tonumber(ARGV[5]) then return "FOREIGN " .. version end
if state == "paused" then return "UNCHANGED" end
if state == "finished" then return "FINISHED" end
local now = nowMs()
redis.call("HINCRBY", KEYS[1], "gen", 1)
redis.call("HSET", KEYS[1], "state", "paused", "pausedAt", now, "updated", now)
if ARGV[3] ~= "" then redis.call("HSET", KEYS[1], "pauseNote", ARGV[3]) end
if ARGV[4] ~= "" then redis.call("HSET", KEYS[1], "pausedBy", ARGV[4]) end
setDue(KEYS[2], ARGV[1], "")
-- Nothing is expected of it meanwhile.
redis.call("ZREM", KEYS[4], ARGV[1])
rearm(KEYS[3], "e", KEYS[4])
rearm(KEYS[3], ARGV[2], KEYS[2])
return "OK"
