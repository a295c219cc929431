-- Goes on where a commit that cancels a task's open runs met more of them than fit (lib/cancel.lua).
--
-- KEYS: 1 open, 2 runs, 3 next
-- ARGV: 1 prefix of run keys, 2 who, 3 cancel channel, 4 queue, 5 those that were open by then, 6 how many of them to pass over
-- Returns: how many it looked at, how many of them were not cancelled before, and how many are open in all
local ids = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", ARGV[5], "LIMIT", ARGV[6], CANCEL_AT_ONCE)
local now, changed = nowMs(), 0
for _, id in ipairs(ids) do
  if cancelRun(ARGV[1] .. id, KEYS[2], id, now, ARGV[2], ARGV[3], ARGV[4]) then changed = changed + 1 end
end
rearm(KEYS[3], "r", KEYS[2])
return { #ids, changed, redis.call("ZCARD", KEYS[1]) }
