-- Continues a commit that cancels more open runs of a task than one script may (lib/cancel.lua).
--
-- A.opened: cancels runs opened until then; A.passed: how many of them to pass over
-- Returns: the number of runs checked, how many of them were not cancelled before, and the number of open runs
-- Selects by rank: by time, Redis would go through all runs that are passed over.
local first = tonumber(A.passed)
local flat = redis.call("ZRANGE", K.open, first, first + CANCEL_AT_ONCE - 1, "WITHSCORES")
local now, looked, changed = nowMs(), 0, 0
for i = 1, #flat, 2 do
  local id = flat[i]
  if tonumber(flat[i + 1]) > tonumber(A.opened) then break end
  looked = looked + 1
  if cancelRun(id, ours(F.keys.run, id), now, A.by) then changed = changed + 1 end
end
rearm(F.parts.runs, K.runs)
return { looked, changed, redis.call("ZCARD", K.open) }
