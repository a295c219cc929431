-- Goes on where a commit that cancels a task's open runs met more of them than fit (lib/cancel.lua).
--
-- KEYS: 1 open, 2 runs, 3 next
-- ARGV: 1 prefix of run keys, 2 who, 3 cancel channel, 4 queue, 5 those that were open by then, 6 how many of them to pass over
-- Returns: how many it looked at, how many of them were not cancelled before, and how many are open in all
-- By their rank: by their time Redis would go through all that are passed over.
local first = tonumber(ARGV[6])
local flat = redis.call("ZRANGE", KEYS[1], first, first + CANCEL_AT_ONCE - 1, "WITHSCORES")
local now, looked, changed = nowMs(), 0, 0
for i = 1, #flat, 2 do
  local id = flat[i]
  if tonumber(flat[i + 1]) > tonumber(ARGV[5]) then break end
  looked = looked + 1
  if cancelRun(ARGV[1] .. id, KEYS[2], id, now, ARGV[2], ARGV[3], ARGV[4]) then changed = changed + 1 end
end
rearm(KEYS[3], "r", KEYS[2])
return { looked, changed, redis.call("ZCARD", KEYS[1]) }
