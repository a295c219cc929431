-- Commits a batch of decisions about tasks of one shard: claims, and what was triggered by hand. Each task stands for itself:
-- one that fails a check is answered with the check's name and left as it was. Everything is checked before the first
-- write; Lua has no rollback.
--
-- KEYS: 1 due index of the shard, 2 next, 3 runs, 4-14 BullMQ's keys (bullmq.ts: BULL_KEYS)
--       then for each task: task, open, ledger, run, job, backfill that it is of (or a name that holds nothing), and the jobs of the runs that the decision reckoned with
-- ARGV: 1 token, 2 node, 3 shard, 4 number of tasks, 5 first look of the reconciler after (ms), 6 queue,
--       7 prefix of run keys, 8 cancel channel
--       then for each task, in this order:
--         local name, generation, not before ("" any time), held ("1": only while scheduled), guarded ("1": no second run
--         beside a live one), run that is waited for ("" none), cancel ("1": all runs that are open),
--         look at ("" not before someone says so), waits for this run's end ("1"), finished, and lingers for (ms, "" not)
--         number of fields, then field and value of each; number of fields to remove, then their names
--         number of skips, then for each: reason, from, to, run in the way ("-" none)
--         time at which that backfill stands ("" no backfill), number of its fields, then field and value of each
--         number of reckoned runs, then their ids
--         run id ("" none is enqueued), and where there is one: prioritized, packed arguments, data up to the enqueue time,
--         packed options, the run's details
-- Returns: { now, status of each task }: OK | DONE | STALE | EARLY | OVERLAP | ERROR <text>
local now = nowMs()
local token, node, shard, count, checkAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local bull = {}
for i = 1, 11 do bull[i] = KEYS[3 + i] end

local k, a = 14, 8
local function arg()
  a = a + 1
  return ARGV[a]
end
local function list()
  local items = {}
  for i = 1, tonumber(arg()) do items[i] = arg() end
  return items
end

local out = { now }
for n = 1, count do
  local taskKey, openKey, ledgerKey, runKey, jobKey = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5]
  local name, generation, notBefore, held, guarded = arg(), arg(), arg(), arg(), arg()
  local awaited, cancel, lookAt, waits, lingers = arg(), arg(), arg(), arg(), arg()
  local backfillKey = KEYS[k + 6]
  local set, remove, skips, standsAt, backfill, reckonedIds = list(), list(), list(), arg(), list(), list()
  local reckoned = {}
  for i, id in ipairs(reckonedIds) do reckoned[id] = i end
  local run, prioritized, args, data, opts, details = arg(), nil, nil, nil, nil, nil
  if run ~= "" then prioritized, args, data, opts, details = arg(), arg(), arg(), arg(), arg() end
  local firstJob = k + 6
  k = firstJob + #reckonedIds

  local stored = redis.call("HMGET", taskKey, "token", "gen", "state", "cursor")
  local status
  if stored[1] == token or (run ~= "" and redis.call("EXISTS", runKey) == 1) then
    status = "DONE"
  elseif FENCED and (stored[2] ~= generation or (held == "1" and stored[3] ~= "scheduled")) then
    status = "STALE"
  elseif notBefore ~= "" and now < tonumber(notBefore) then
    status = "EARLY"
  elseif standsAt ~= "" and redis.call("HGET", backfillKey, "at") ~= standsAt then
    status = "STALE"
  elseif awaited ~= "" and not redis.call("ZSCORE", openKey, awaited) then
    status = "STALE"
  elseif GUARDED and run ~= "" and guarded == "1" and revived(openKey, reckoned, firstJob) then
    status = "OVERLAP"
  elseif run ~= "" then
    local failure = enqueue(bull, prioritized, args, data .. now .. "}}", opts, jobKey)
    status = failure and ("ERROR " .. failure) or "OK"
  else
    status = "OK"
  end

  if status == "OK" then
    redis.call("HSET", taskKey, "gen", string.format("%.0f", tonumber(generation) + 1), "token", token, unpack(set))
    if #backfill > 0 then redis.call("HSET", backfillKey, unpack(backfill)) end
    if #remove > 0 then redis.call("HDEL", taskKey, unpack(remove)) end
    setDue(KEYS[1], name, lookAt)
    if lingers ~= "" then redis.call("ZADD", KEYS[3], now + lingers, name) end
    -- A backfill has a cursor of its own.
    local decided = standsAt ~= "" and standsAt or stored[4]
    for i = 1, #skips, 4 do
      record(ledgerKey, skips[i], skips[i + 1], skips[i + 2], now, node, skips[i + 3], decided)
      decided = skips[i + 2]
    end
    if cancel == "1" then
      for _, id in ipairs(redis.call("ZRANGE", openKey, 0, -1)) do
        cancelRun(ARGV[7] .. id, KEYS[3], id, now, node, ARGV[8], ARGV[6])
      end
    end
    if run ~= "" then
      openRun(runKey, openKey, KEYS[3], run, name, now, node, details, now + (waits == "1" and WAITED_FOR or checkAfter))
    end
  end
  out[n + 1] = status
end

rearm(KEYS[2], shard, KEYS[1])
rearm(KEYS[2], "r", KEYS[3])
return out
