-- Commits a batch of decisions about tasks of one shard: claims, and what was triggered by hand. Each task stands for itself:
-- one that fails a check is answered with the check's name and left as it was. Everything is checked before the first
-- write; Lua has no rollback.
--
-- KEYS: 1 due index of the shard, 2 next, 3 runs, 4-14 BullMQ's keys (bullmq.ts: BULL_KEYS)
--       then for each task: task, open; run and job where one is enqueued; ledger where times are skipped; backfill that it is of,
--       where it is; the jobs of the runs that the decision reckoned with
-- ARGV: 1 token, 2 node, 3 shard, 4 first look of the reconciler after (ms), 5 queue, 6 prefix of run keys, 7 cancel channel,
--       8 the job templates and 9 the tasks' items, both as JSON,
--       then for each task that enqueues: data up to the enqueue time, the run's details
-- An item (commit-items.ts), in this order:
--       local name, generation, not before ("" any time), held (only while scheduled), guarded (no second run beside a live
--       one), look at ("" not before someone says so), fields and values to set, ids of the runs reckoned with,
--       run id ("" none is enqueued), its template, and what few have, by name (CommitExtras)
-- Returns: { now, status of each task }: OK | DONE | STALE | EARLY | OVERLAP | ERROR <text>
local now = nowMs()
-- Numbers are made text once: Redis would do it anew for each command.
local nowText = string.format("%.0f", now)
local token, node, shard, checkAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local checkAt, waitedForAt = string.format("%.0f", now + checkAfter), string.format("%.0f", now + WAITED_FOR)
bullQueue({ unpack(KEYS, 4, 14) })

local k, a = 14, 9
local function key()
  k = k + 1
  return KEYS[k]
end
local function arg()
  a = a + 1
  return ARGV[a]
end

local templates = cjson.decode(ARGV[8])

-- The index entries of all tasks are written together, at the end.
local due, notDue, runs = {}, {}, {}

-- Returns the check's name, or nil; and the task's runs that are open (lib/open.lua).
local function check(item, taskKey, openKey, runKey, backfillKey, firstJob)
  local _, generation, notBefore, held, guarded, _, _, reckonedIds, run, _, extras = unpack(item)
  local stored = redis.call("HMGET", taskKey, "token", "gen", "state", "open")
  local named = stored[4]
  if stored[1] == token then return "DONE" end
  if FENCED and (stored[2] ~= generation or (held and stored[3] ~= "scheduled")) then
    -- This very claim, and another one since.
    return runKey and redis.call("EXISTS", runKey) == 1 and "DONE" or "STALE"
  end
  if notBefore ~= "" and now < tonumber(notBefore) then return "EARLY" end
  if extras and extras.backfillAt and redis.call("HGET", backfillKey, "at") ~= extras.backfillAt then return "STALE" end
  if extras and extras.awaited and not isOpen(named, openKey, extras.awaited) then return "STALE" end
  if GUARDED and guarded and run ~= "" then
    local reckoned = {}
    for i, id in ipairs(reckonedIds) do reckoned[id] = i end
    if revived(named, openKey, reckoned, firstJob) then return "OVERLAP" end
  end
  return nil, named
end

-- What few tasks need besides: skipped times, fields to remove, a backfill's step, runs to cancel.
local function commitExtras(extras, taskKey, ledgerKey, backfillKey, name, cursor)
  if extras.backfillSet then redis.call("HSET", backfillKey, unpack(extras.backfillSet)) end
  if extras.remove then redis.call("HDEL", taskKey, unpack(extras.remove)) end
  if extras.lingers then
    runs[#runs + 1] = string.format("%.0f", now + extras.lingers)
    runs[#runs + 1] = name
  end
  -- A backfill has a cursor of its own.
  local decided = extras.backfillAt or cursor
  local skips = extras.skips or {}
  for i = 1, #skips, 4 do
    record(ledgerKey, skips[i], skips[i + 1], skips[i + 2], now, node, skips[i + 3], decided)
    decided = skips[i + 2]
  end
end

local function cancelAll(ids)
  for _, id in ipairs(ids) do cancelRun(ARGV[6] .. id, KEYS[3], id, now, node, ARGV[7], ARGV[5]) end
end

local function commit(item)
  local name, _, _, held, _, lookAt, set, reckoned, run, template, extras = unpack(item)
  local taskKey, openKey = key(), key()
  local runKey, jobKey, data, details
  if run ~= "" then runKey, jobKey, data, details = key(), key(), arg(), arg() end
  local ledgerKey = extras and extras.skips and key()
  local backfillKey = extras and extras.backfillAt and key()
  local firstJob = k
  k = k + #reckoned

  local refused, named = check(item, taskKey, openKey, runKey, backfillKey, firstJob)
  if refused then return refused end
  if run ~= "" then
    local failure = enqueue(templates[template], run, data .. nowText .. "}}", jobKey)
    if failure then return "ERROR " .. failure end
  end
  -- Before the cursor moves.
  local cursor = ledgerKey and redis.call("HGET", taskKey, "cursor")
  if extras and extras.cancel then cancelAll(openIds(named, openKey)) end
  if run ~= "" then
    set[#set + 1] = "open"
    set[#set + 1] = addOpen(named, openKey, run, now)
  end
  -- Of a claim that enqueues, the run's record tells whether it was made.
  if run == "" or not held then
    set[#set + 1] = "token"
    set[#set + 1] = token
  end
  redis.call("HSET", taskKey, unpack(set))
  if lookAt == "" then
    notDue[#notDue + 1] = name
  else
    due[#due + 1] = lookAt
    due[#due + 1] = name
  end
  if extras then commitExtras(extras, taskKey, ledgerKey, backfillKey, name, cursor) end
  if run ~= "" then
    recordRun(runKey, name, nowText, node, details)
    runs[#runs + 1] = extras and extras.waits and waitedForAt or checkAt
    runs[#runs + 1] = run
  end
  return "OK"
end

local out = { now }
for n, item in ipairs(cjson.decode(ARGV[9])) do
  -- What others have written where one task's keys are must not keep the others, nor the entries below, from being written.
  local ok, status = pcall(commit, item)
  if not ok and type(status) == "table" then status = status.err end
  out[n + 1] = ok and status or "ERROR " .. tostring(status)
end

bullCount()
if #due > 0 then redis.call("ZADD", KEYS[1], unpack(due)) end
if #notDue > 0 then redis.call("ZREM", KEYS[1], unpack(notDue)) end
if #runs > 0 then redis.call("ZADD", KEYS[3], unpack(runs)) end
rearm(KEYS[2], shard, KEYS[1])
rearm(KEYS[2], "r", KEYS[3])
return out
