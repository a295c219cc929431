-- Deletes a task: from here on it never fires, and jobs still queued for it do nothing. What its runs left is set aside, and is cleared
-- in bounded steps (lib/clear.lua). A task of that name that comes again has nothing to do with it: what was open is cleared before
-- one is stored (put.lua, enqueue-new.lua).
--
-- KEYS: 1 task, 2 due index of its shard, 3 next, 4 tasks, 5 ledger, 6 statistics, 7 expected, 8 runs, 9 alerts, 10 backfills, 11 priorities,
--       12 open, 13 history, 14 failures, 15-17 where these three are set aside
-- ARGV: 1 local name, 2 shard, 3 prefix of tag sets, 4 prefix of the sets of tasks by shared calendar,
--       5 prefix of backfills, 6-8 the names among `runs` of what is set aside, 9 only if nothing is left for it to do ("1"),
--       10 the reconciler looks again after, at what it said has lingered (ms)
-- Returns: 1 (0: there was none, or something is left)
local CLEAR_AFTER = 10000 -- whoever deletes does it at once, if it is there
local now = nowMs()
local named = redis.pcall("HMGET", KEYS[1], "tags", "calendars", "open", "state")
if ARGV[9] == "1" then
  if named[4] ~= "finished" or (named[3] or "") ~= "" then return 0 end
  -- It was put again meanwhile, and has finished again: it lingers once more.
  local at = redis.call("ZSCORE", KEYS[8], ARGV[1])
  if at and tonumber(at) > now + tonumber(ARGV[10]) then return 0 end
end
if redis.call("EXISTS", KEYS[1], KEYS[5], KEYS[6]) == 0 and not redis.call("ZSCORE", KEYS[4], ARGV[1]) then return 0 end
-- First what may fail: while the task is there, it can be done again. Whatever others have written where the sets are goes too.
for i = 12, 14 do
  if redis.call("EXISTS", KEYS[i]) == 1 then
    redis.call("RENAME", KEYS[i], KEYS[i + 3])
    redis.call("ZADD", KEYS[8], now + CLEAR_AFTER, ARGV[i - 6])
  end
end
redis.call("DEL", KEYS[1], KEYS[5], KEYS[6])
if named[3] and isRun(named[3]) then
  -- One alone: the set is nobody's of ours.
  redis.call("DEL", KEYS[15])
  redis.call("ZADD", KEYS[15], now, named[3])
  redis.call("ZADD", KEYS[8], now + CLEAR_AFTER, ARGV[6])
end
for i, prefix in ipairs({ ARGV[3], ARGV[4] }) do
  for set in string.gmatch(named[i] or "", "[^,]+") do redis.pcall("ZREM", prefix .. set, ARGV[1]) end
end
redis.call("ZREM", KEYS[4], ARGV[1])
setDue(KEYS[2], ARGV[1], "")
redis.call("ZREM", KEYS[7], ARGV[1])
redis.call("ZREM", KEYS[8], ARGV[1])
redis.call("HDEL", KEYS[11], ARGV[1])
rearm(KEYS[3], "r", KEYS[8])
rearm(KEYS[3], "e", KEYS[7])
-- What was to be told of it, and what was asked for again. Both lists are short, or empty.
local ending = string.match(ARGV[1], "/.*") .. '"'
local found = false
for i, line in ipairs(redis.pcall("LRANGE", KEYS[9], 0, 999)) do
  -- To decode each would take much longer.
  local readable, alert = pcall(cjson.decode, string.find(line, ending, 1, true) and line)
  if readable and type(alert) == "table" and alert.task == ARGV[1] then
    -- All are taken off together: to look for each takes as long as the list.
    found = true
    redis.pcall("LSET", KEYS[9], i - 1, "")
  end
end
if found then redis.call("LREM", KEYS[9], 0, "") end
if redis.call("EXISTS", KEYS[9]) == 0 then redis.call("ZREM", KEYS[3], "a") end
for _, id in ipairs(redis.pcall("ZRANGE", KEYS[10], 0, 999)) do
  if redis.pcall("HGET", ARGV[5] .. id, "task") == ARGV[1] then
    redis.call("DEL", ARGV[5] .. id)
    redis.call("ZREM", KEYS[10], id)
  end
end
rearm(KEYS[3], "b", KEYS[10])
rearm(KEYS[3], ARGV[2], KEYS[2])
return 1
