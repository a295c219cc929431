-- Attempts end: the run becomes final, or is queued again for its next attempt. Only the attempt that holds the
-- run's fence may say so. Without a fence the reconciler speaks, for a job whose end nobody told us; only where that job
-- is over or gone.
--
-- ARGV of each: 1 fence ("" the reconciler, "crashed" who found its workers dead), 2 outcome ("" another attempt is left), 3 error,
--       4 result as JSON, 5 attempts that BullMQ counts as made, 6 what follows for the task, as JSON ("" nothing; runs.ts: Aftermath)
-- Returns of each: "OK" | "FENCED" (another attempt took over) | "GONE" | "FINAL" | "LIVE" | "STALE" (decide again) |
--          "CANCELLED" (someone wanted that, and its worker had not heard: to be settled so)
local now = nowMs()

local function settle(run, fence, outcome, error, result, made, following)
  local was = redis.call("HMGET", run.key, "state", "fence", "outcome", "cancel")
  if not was[1] then return "GONE" end
  -- The same word once more: its answer was lost, and it was sent again.
  if was[1] == "final" then
    if was[2] ~= fence then return "FINAL" end
    if was[3] == outcome then return "OK" end
    return was[4] and was[3] == "cancelled" and outcome ~= "" and "CANCELLED" or "FINAL"
  end
  if fence == "crashed" then
    if redis.call("HEXISTS", run.key, "crashed") == 0 then return "FENCED" end
  elseif fence == "" then
    if jobState(run.job) == "live" then return "LIVE" end
  elseif was[2] ~= fence then
    return "FENCED"
  elseif was[4] and outcome ~= "" and outcome ~= "cancelled" then
    return "CANCELLED"
  end
  local after = following ~= "" and cjson.decode(following)
  if after then
    local gen = redis.call("HGET", run.task, "gen")
    local failures = redis.call("HGET", run.stats, "consecutiveFailures") or "0"
    if gen and (gen ~= after.generation or failures ~= after.failures) then return "STALE" end
  end

  -- The attempt came to its end: it was no crash. (One that the reconciler finds gone without a word stays one.)
  local survived = was[1] ~= "queued" and outcome ~= "crashed" and outcome ~= "lost"
  if outcome == "" then
    if survived and redis.call("EXISTS", run.task) == 1 then
      redis.call("HINCRBY", run.stats, "crashes", -1)
      redis.call("HSET", run.stats, "consecutiveCrashes", 0)
    end
    if error ~= "" then
      redis.call("HSET", run.key, "state", "queued", "error", error)
    elseif was[1] ~= "queued" then
      -- It was handed back, or its items are waited for: the next start goes on with this attempt.
      redis.call("HSET", run.key, "state", "queued", "again", "1")
    end
    return "OK"
  end
  local says = {}
  if error ~= "" then add(says, "error", error) end
  if made ~= "" then
    add(says, "made", made)
    local trace = traceOf(run.job)
    if trace > 0 then add(says, "trace", trace) end
  end
  if result ~= "" then add(says, "result", result) end
  finish(run, outcome, now, {
    error = error, says = says, stamps = fence == "" and stampsOf(run), survived = survived, retried = after and after.retried,
  })

  local follows = after and (after.superseded or after.replaced or after.note or after.pending)
  if follows and redis.call("EXISTS", run.task) == 1 then
    redis.call("HINCRBY", run.task, "gen", 1)
    local passed, replaced, note, pending = after.superseded, after.replaced, after.note, after.pending
    if passed then record(run.ledger, "retry-superseded", passed.nominal, passed.nominal, now, run.id, "-", passed.before) end
    if replaced then record(run.ledger, "superseded", replaced, replaced, now, run.id, "-", false) end
    if pending then
      redis.call("HSET", run.task, "pending", pending)
      if redis.call("HGET", run.task, "state") == "finished" then redis.call("HSET", run.task, "state", "scheduled") end
    end
    if note and redis.call("HGET", run.task, "state") == "scheduled" then
      redis.call("HSET", run.task, "state", "paused", "pausedAt", now, "pausedBy", "carillon", "pauseNote", note)
      alert(run, "paused", now, note)
    end
    rearmTask(run, now)
  end
  return "OK"
end

local answers = each(settle)
afterEach()
return answers
