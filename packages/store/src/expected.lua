-- Raises an alert for scheduled tasks without a successful run for `noSuccessFor`: once each, until a run succeeds again.
--
-- Returns: the number of deadlines checked
local now = nowMs()
local names = redis.call("ZRANGEBYSCORE", K.expected, "-inf", now, "WITHSCORES", "LIMIT", 0, A.most)
for i = 1, #names, 2 do
  local name, deadline = names[i], tonumber(names[i + 1])
  redis.call("ZREM", K.expected, name)
  -- Nothing is expected of a task that is paused, finished or a shadow.
  local is = redis.pcall("HMGET", ours(F.keys.task, name), "state", "mode")
  if is[1] == "scheduled" and is[2] ~= "shadow" then
    incident({ kind = "missed-deadline", task = name, at = deadline })
  end
end
rearm(F.parts.expected, K.expected)
return #names / 2
