-- Makes a run final: out of its task's open runs, into its history, whose oldest go beyond the cap.
local function finish(runKey, openKey, historyKey, runPrefix, id, outcome, now, cap)
  redis.call("HSET", runKey, "state", "final", "outcome", outcome, "finished", now)
  redis.call("ZREM", openKey, id)
  redis.call("ZADD", historyKey, now, id)
  local excess = redis.call("ZCARD", historyKey) - cap
  if excess > 0 then
    local popped = redis.call("ZPOPMIN", historyKey, excess)
    for i = 1, #popped, 2 do redis.call("DEL", runPrefix .. popped[i]) end
  end
end
