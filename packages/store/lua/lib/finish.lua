-- Makes a run final: out of its task's open runs, into its history, whose oldest go beyond the cap. A task that waits for
-- this run has its next time from here on.
--
-- `run`: { key, id, queue-wide keys and prefixes … } as both callers make it.
local function finish(run, outcome, now, cap)
  redis.call("HSET", run.key, "state", "final", "outcome", outcome, "finished", now)
  redis.call("ZREM", run.open, run.id)
  redis.call("ZADD", run.history, now, run.id)
  local excess = redis.call("ZCARD", run.history) - cap
  if excess > 0 then
    local popped = redis.call("ZPOPMIN", run.history, excess)
    for i = 1, #popped, 2 do redis.call("DEL", run.prefix .. popped[i]) end
  end
  local wait, delay = string.match(redis.call("HGET", run.task, "wait") or "", "^(%S+) (%d+)$")
  if wait ~= run.id then return end
  local due = string.format("%.0f", now + delay)
  redis.call("HDEL", run.task, "wait")
  redis.call("HSET", run.task, "nominal", due, "due", due)
  if redis.call("HGET", run.task, "state") == "scheduled" then
    setDue(run.due, run.name, due)
    rearmAndWake(run.next, run.shard, run.due, run.channel, run.queue)
  end
end
