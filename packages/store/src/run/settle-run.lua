-- Attempts end: the run becomes final, or is queued again for its next attempt. Only the attempt that holds the
-- run's fence may do so. The reconciler has no fence: it settles runs whose end no worker reported, and only if the job is done or
-- missing.
--
-- Each: fence: "" the reconciler, "crashed" for a worker that found earlier workers dead; outcome: "" another attempt is left; result: as JSON;
--       following: changes to the task, as JSON, "" nothing (Aftermath in runs.ts)
-- Returns of each: "OK" | "FENCED" (another attempt took over) | "GONE" | "FINAL" | "LIVE" | "STALE" (decide again) |
--          "CANCELLED" (a cancel was requested that its worker had not received: settle it as cancelled)
local now = nowMs()

local function settle(run)
  local fence, outcome, error = run.fence, run.outcome, run.error
  local was = redis.call("HMGET", run.key, "state", "fence", "outcome", "cancel", "attempts")
  if not was[1] then return "GONE" end
  -- A resend after a lost answer.
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
  local after = run.following ~= "" and cjson.decode(run.following)
  if after then
    local gen = redis.call("HGET", run.task, "gen")
    local failures = failuresInARow(run.stats)
    if gen and (gen ~= after.generation or failures ~= after.failures) then return "STALE" end
  end

  -- The attempt reached its end: it was not a crash. (An attempt that vanished without a report stays one.)
  local survived = was[1] ~= "queued" and outcome ~= "crashed" and outcome ~= "lost"
  if outcome == "" then
    if survived and redis.call("EXISTS", run.task) == 1 then
      local attempts, crashes, _, starts = readStarts(redis.call("HGET", run.stats, "starts"))
      redis.call("HSET", run.stats, "starts", attempts .. " " .. whole(crashes - 1) .. " 0" .. starts)
    end
    if error ~= "" then
      redis.call("HSET", run.key, "state", "queued", "error", error)
      -- A late copy does not move the end.
      redis.call("HSETNX", run.key, "e:" .. was[5], now)
    elseif was[1] ~= "queued" then
      -- Handed back, or waiting for its items: the next start continues this attempt.
      redis.call("HSET", run.key, "state", "queued", "again", "1")
    end
    return "OK"
  end
  local says = {}
  if error ~= "" then add(says, "error", error) end
  -- The job's state for wasRetried, read now: another worker may have taken the job over meanwhile, and failed or ended it.
  if fence ~= "" and jobState(run.job) == "live" then
    add(says, "made", attemptsMade(run.job) or "0")
    local trace = traceOf(run.job)
    if trace > 0 then add(says, "trace", trace) end
  end
  if run.result ~= "" then add(says, "result", run.result) end
  finish(run, outcome, now, {
    error = error, says = says, stamps = fence == "" and stampsOf(run.job), survived = survived, retried = after and after.retried,
  })

  local follows = after and (after.superseded or after.replaced or after.note or after.pending)
  local state = follows and redis.call("HGET", run.task, "state")
  if state then
    local passed, replaced, note, pending = after.superseded, after.replaced, after.note, after.pending
    if passed then record(run.ledger, "retry-superseded", passed.nominal, passed.nominal, now, run.id, "-", passed.before) end
    if replaced then record(run.ledger, "superseded", replaced, replaced, now, run.id, "-", false) end
    if pending and state == "finished" then state = "scheduled" end
    local pauses = note and state == "scheduled"
    moveTask(run, readTask(run), now, { state = pauses and "paused" or state, pending = pending, by = "carillon", note = note })
    if pauses then alert({ kind = "paused", task = run.name, at = now, run = run.id, error = note }) end
  end
  return "OK"
end

local answers = each(settle)
afterEach()
return answers
