-- Reopens a final run: removes its end and the fields that led to it. Its task must exist.
local function reopen(run, outcome, now)
  local finished, started, reopened, attempts =
    unpack(redis.call("HMGET", run.key, "finished", "started", "reopened", "attempts"))
  local took = sumOf(outcome) and timeTaken(tonumber(finished) or now, started, reopened)
  local times, ms = readCount(redis.call("HGET", run.stats, outcome))
  redis.call("HSET", run.stats, outcome, whole(times - 1) .. " " .. whole(ms - (took or 0)))
  redis.call("HSET", run.key, "reopened", now, "e:" .. (attempts or ""), finished or now)
  redis.call("HDEL", run.key, "outcome", "finished", "error", "result", "made", "trace", "cancel", "crashed", "crashes",
    "itemCrashes", "again")
  for _, set in ipairs({ run.history, run.failures, K.journal }) do redis.call("ZREM", set, run.id) end
  redis.call("HSET", run.task, "open", addOpen(redis.call("HGET", run.task, "open"), run.open, run.id, now))
  takePlace(ownerOf(run.name), run.id, now)
end

-- Whether the job of a run that its worker settled has ended since and was retried from outside. `made` and `trace`: at the settle, no `made` if the job had
-- ended by then; `counted`: attempts that BullMQ counts as made now. If a retry reset the count, the failure before it is still in the job's stack trace.
local function wasRetried(jobKey, made, trace, counted)
  if not made then return true end
  local failed = tonumber(trace or 0) ~= traceOf(jobKey)
  -- A worker that does not know the run took it over and failed, and BullMQ tries again: a retry from outside removes the reason.
  if failed and redis.call("HEXISTS", jobKey, "failedReason") == 1 then return false end
  -- BullMQ records and counts each failure: a recorded one that is not counted means the count was reset.
  return tonumber(counted) > tonumber(made) or failed and not attemptsMade(jobKey)
end
