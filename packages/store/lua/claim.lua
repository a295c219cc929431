-- Commits a batch of decisions about due tasks of one shard. Each task stands for itself: one that fails a check is
-- answered with the check's name and left as it was. Everything is checked before the first write; Lua has no
-- rollback.
--
-- KEYS: 1 due index of the shard, 2 next, 3 runs, 4-14 BullMQ's keys (bullmq.ts: BULL_KEYS)
--       then for each task: task, open, ledger, run, job, and the jobs of the runs that the decision reckoned with
-- ARGV: 1 claim token, 2 node, 3 shard, 4 number of tasks, 5 first look of the reconciler after (ms)
--       then for each task, in this order:
--         local name, generation, due, mode ("enqueue" | "skip"), guarded ("1": no second run beside a live one),
--         new cursor, new nominal ("" none), new due ("" none), delay after this run's end in ms (neither: finished),
--         occurrences of the schedule enqueued so far ("" as before),
--         number of skips, then for each: reason, from, to
--         number of reckoned runs, then their ids
--         where mode is "enqueue": run id, prioritized, packed arguments, data up to the enqueue time, packed options,
--         the run's details
-- Returns: { now, status of each task }: OK | DONE | STALE | EARLY | OVERLAP | ERROR <text>
local now = nowMs()
local token, node, shard, count, checkAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local bull = {}
for i = 1, 11 do bull[i] = KEYS[3 + i] end

local k, a = 14, 5
local function arg()
  a = a + 1
  return ARGV[a]
end

local out = { now }
for n = 1, count do
  local taskKey, openKey, ledgerKey, runKey, jobKey = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5]
  local name, generation, due, mode, guarded = arg(), arg(), arg(), arg(), arg()
  local cursor, nominal, newDue, delay, fired = arg(), arg(), arg(), arg(), arg()
  local skips = {}
  for i = 1, tonumber(arg()) do skips[i] = { arg(), arg(), arg() } end
  local reckoned, reckonedCount = {}, tonumber(arg())
  for i = 1, reckonedCount do reckoned[arg()] = i end
  local run, prioritized, args, data, opts, details
  if mode == "enqueue" then run, prioritized, args, data, opts, details = arg(), arg(), arg(), arg(), arg(), arg() end
  local firstJob = k + 5
  k = firstJob + reckonedCount

  local stored = redis.call("HMGET", taskKey, "token", "gen", "state", "cursor")
  local status
  if stored[1] == token then
    status = "DONE"
  elseif FENCED and (stored[2] ~= generation or stored[3] ~= "scheduled") then
    status = "STALE"
  elseif now < tonumber(due) then
    status = "EARLY"
  elseif GUARDED and mode == "enqueue" and guarded == "1" and revived(openKey, reckoned, firstJob) then
    status = "OVERLAP"
  elseif mode == "enqueue" then
    local failure = enqueue(bull, prioritized, args, data .. now .. "}}", opts, jobKey)
    status = failure and ("ERROR " .. failure) or "OK"
  else
    status = "OK"
  end

  if status == "OK" then
    local gen = string.format("%.0f", tonumber(generation) + 1)
    if newDue == "" then
      redis.call("HSET", taskKey, "gen", gen, "token", token, "cursor", cursor)
      redis.call("HDEL", taskKey, "nominal", "due")
      if delay == "" then
        redis.call("HSET", taskKey, "state", "finished")
      else
        redis.call("HSET", taskKey, "wait", run .. " " .. delay)
      end
    else
      redis.call("HSET", taskKey, "gen", gen, "token", token, "cursor", cursor, "nominal", nominal, "due", newDue)
    end
    if fired ~= "" then redis.call("HSET", taskKey, "fired", fired) end
    setDue(KEYS[1], name, newDue)
    local decided = stored[4]
    for _, skip in ipairs(skips) do
      record(ledgerKey, skip[1], skip[2], skip[3], now, node, decided)
      decided = skip[3]
    end
    if run then
      openRun(runKey, openKey, KEYS[3], run, name, now, node, details, now + (delay == "" and checkAfter or WAITED_FOR))
    end
  end
  out[n + 1] = status
end

rearm(KEYS[2], shard, KEYS[1])
rearm(KEYS[2], "r", KEYS[3])
return out
