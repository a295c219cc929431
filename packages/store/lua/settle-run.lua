-- An attempt ends: the run becomes final, or is queued again for its next attempt. Only the attempt that holds the
-- run's fence may say so. Without a fence the reconciler speaks, for a job whose end nobody told us; only where that job
-- is over or gone.
--
-- ARGV: 1 fence ("" the reconciler, "crashed" who found its workers dead), 2 outcome ("" another attempt is left), 3 error, 4 result as JSON,
--       5 attempts that BullMQ counts as made,
--       6 generation of the task that the following was decided with ("" nothing was), 7 failures in a row it reckoned with,
--       8 all that waits now as JSON ("" as before), 9 a retry is among it ("1"), 10 note of a pause ("" none),
--       11 nominal time of a retry that the next occurrence takes the place of ("" none), 12 the nominal time before it,
--       13 time of a run that was asked for before, and that another one takes the place of ("" none)
-- Returns: "OK" | "FENCED" (another attempt took over) | "GONE" | "FINAL" | "LIVE" | "STALE" (decide again) |
--          "CANCELLED" (someone wanted that, and its worker had not heard: to be settled so)
local fence, outcome, error, generation = ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3], ARGV[OWN + 6]
local run = redis.call("HMGET", RUN.key, "state", "fence", "outcome", "cancel")
if not run[1] then return "GONE" end
-- The same word once more: its answer was lost, and it was sent again.
if run[1] == "final" then
  if run[2] ~= fence then return "FINAL" end
  if run[3] == outcome then return "OK" end
  return run[4] and run[3] == "cancelled" and outcome ~= "" and "CANCELLED" or "FINAL"
end
if fence == "crashed" then
  if redis.call("HEXISTS", RUN.key, "crashed") == 0 then return "FENCED" end
elseif fence == "" then
  if jobState(RUN.job) == "live" then return "LIVE" end
elseif run[2] ~= fence then
  return "FENCED"
elseif run[4] and outcome ~= "" and outcome ~= "cancelled" then
  return "CANCELLED"
end
if generation ~= "" then
  local gen = redis.call("HGET", RUN.task, "gen")
  local failures = redis.call("HGET", RUN.stats, "consecutiveFailures") or "0"
  if gen and (gen ~= generation or failures ~= ARGV[OWN + 7]) then return "STALE" end
end

local now = nowMs()
-- The attempt came to its end: it was no crash. (One that the reconciler finds gone without a word stays one.)
local survived = run[1] ~= "queued" and outcome ~= "crashed" and outcome ~= "lost"
if outcome == "" then
  if survived and redis.call("EXISTS", RUN.task) == 1 then
    redis.call("HINCRBY", RUN.stats, "crashes", -1)
    redis.call("HSET", RUN.stats, "consecutiveCrashes", 0)
  end
  if error ~= "" then
    redis.call("HSET", RUN.key, "state", "queued", "error", error)
  elseif run[1] ~= "queued" then
    -- It was handed back, or its items are waited for: the next start goes on with this attempt.
    redis.call("HSET", RUN.key, "state", "queued", "again", "1")
  end
  return "OK"
end
local says, result, made = {}, ARGV[OWN + 4], ARGV[OWN + 5]
if error ~= "" then add(says, "error", error) end
if made ~= "" then
  add(says, "made", made)
  local trace = traceOf(RUN.job)
  if trace > 0 then add(says, "trace", trace) end
end
if result ~= "" then add(says, "result", result) end
finish(RUN, outcome, now, {
  error = error, says = says, stamps = fence == "" and stampsOf(RUN), survived = survived, retried = ARGV[OWN + 9] == "1",
})
afterEnds(RUN.outcomes, RUN.next, RUN.runs)

if generation ~= "" and redis.call("EXISTS", RUN.task) == 1 then
  redis.call("HINCRBY", RUN.task, "gen", 1)
  local pending, note, superseded, replaced = ARGV[OWN + 8], ARGV[OWN + 10], ARGV[OWN + 11], ARGV[OWN + 13]
  if superseded ~= "" then record(RUN.ledger, "retry-superseded", superseded, superseded, now, RUN.id, "-", ARGV[OWN + 12]) end
  if replaced ~= "" then record(RUN.ledger, "superseded", replaced, replaced, now, RUN.id, "-", false) end
  if pending ~= "" then
    redis.call("HSET", RUN.task, "pending", pending)
    if redis.call("HGET", RUN.task, "state") == "finished" then redis.call("HSET", RUN.task, "state", "scheduled") end
  end
  if note ~= "" and redis.call("HGET", RUN.task, "state") == "scheduled" then
    redis.call("HSET", RUN.task, "state", "paused", "pausedAt", now, "pausedBy", "carillon", "pauseNote", note)
    alert(RUN, "paused", now, note)
  end
  rearmTask(RUN, now)
end
return "OK"
