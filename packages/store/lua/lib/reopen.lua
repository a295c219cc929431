-- A final run is open again: its end, and what led to that, is taken back. `run`: the keys of it and of its task, by the names that
-- `about` (lib/about.lua) has for them; the task is there.
local function reopen(run, id, outcome, now)
  redis.call("HINCRBY", run.stats, outcome, -1)
  local times = redis.call("HMGET", run.key, "finished", "started", "reopened")
  local sum, took = timeTaken(outcome, tonumber(times[1]) or now, times[2], times[3])
  if sum then redis.call("HINCRBY", run.stats, sum, whole(0 - took)) end
  redis.call("HSET", run.key, "reopened", now)
  redis.call("HDEL", run.key, "outcome", "finished", "error", "result", "made", "trace", "cancel", "crashed", "crashes",
    "again")
  for _, set in ipairs({ run.history, run.failures, run.journal }) do redis.call("ZREM", set, id) end
  redis.call("HSET", run.task, "open", addOpen(redis.call("HGET", run.task, "open"), run.open, id, now))
end

-- Has the job of a run that its worker settled ended since, to be retried from outside? `made` and `trace`: as it was settled; `atm`:
-- attempts that BullMQ counts as made now. Where a retry has set these back, the failure that it followed is still noted.
local function wasRetried(jobKey, made, trace, atm)
  if not made or tonumber(atm) > tonumber(made) then return true end
  -- BullMQ notes and counts each failure: what is noted and not counted was set back.
  return tonumber(trace or 0) ~= traceOf(jobKey) and redis.call("HEXISTS", jobKey, "atm") == 0
end
