-- Commits a batch of decisions about tasks of one shard: claims, and what was triggered by hand. Each task stands for itself:
-- one that fails a check is answered with the check's name and left as it was. Everything is checked before the first
-- write; Lua has no rollback.
--
-- KEYS: 1 due index of the shard, 2 next, 3 runs, 4-14 BullMQ's keys (bullmq.ts: BULL_KEYS)
--       then for each task: task, open; run and job where one is enqueued; ledger where times are skipped; backfill that it is of,
--       where it is; the jobs of the runs that the decision reckoned with
-- ARGV: 1 token, 2 node, 3 shard, 4 first look of the reconciler after (ms), 5 queue, 6 prefix of run keys, 7 cancel channel,
--       8 the job templates as JSON, then an item for each task
-- An item (commit-items.ts) is one text, with a zero byte after each of these:
--       owner, id, generation and cursor ("" none) that the decision was made with, the next generation, not before ("" any time), held
--       ("1": only while scheduled), guarded ("1": no second run beside a live one), look at ("" not before someone says so), cursor,
--       nominal and fired ("" as they are), ids of the runs reckoned with, separated by spaces, what few have as JSON ("" nothing;
--       CommitExtras), run id ("" none is enqueued), its template, the run's details, and what jobData (lib/enqueue.lua) asks for: the
--       occurrence's key, its nominal and due time ("" the same), trigger, more, payload
-- Returns: { now, status of each task, then names of tasks of which more runs are to be cancelled (cancel-open.lua) }
--          status: OK | DONE | STALE | EARLY | OVERLAP | ERROR <text>
local now = nowMs()
-- Numbers are made text once: Redis would do it anew for each command.
local nowText = string.format("%.0f", now)
local token, node, shard, checkAfter, queue = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local checkAt, waitedForAt = string.format("%.0f", now + checkAfter), string.format("%.0f", now + WAITED_FOR)
local COMPLETED = KEYS[8]
bullQueue({ unpack(KEYS, 4, 14) })

-- Much cheaper than a pattern.
local ITEM = string.rep("s", 23)
local k = 14

local templates = cjson.decode(ARGV[8])

-- The index entries of all tasks are written together, at the end.
local due, notDue, runs = {}, {}, {}
local function addEntry(entries, at, member)
  entries[#entries + 1] = at
  entries[#entries + 1] = member
end

-- What was asked for by hand is known by its token, also when others have come between it and its second sending: the newest few
-- are kept.
local ASKED = 16
local function isAsked(taskKey)
  local asked = redis.call("HGET", taskKey, "asked")
  return asked and string.find(" " .. asked .. " ", " " .. token .. " ", 1, true)
end
local function withAsked(taskKey)
  local tokens = { token }
  for known in string.gmatch(redis.call("HGET", taskKey, "asked") or "", "%S+") do
    if #tokens < ASKED then tokens[#tokens + 1] = known end
  end
  return table.concat(tokens, " ")
end

-- Returns the check's name, or nil; and the task's runs that are open (lib/open.lua).
local function check(taskKey, openKey, run, runKey, jobKey, generation, from, held, notBefore, extras, backfillKey, reckoned, firstJob)
  local stored = redis.call("HMGET", taskKey, "token", "gen", "state", "open", "cursor")
  local named = stored[4]
  if stored[1] == token or not held and isAsked(taskKey) then return "DONE" end
  -- A Redis that forgot its last moments counts the same generations once more: a decision of before has another cursor.
  local moved = stored[2] ~= generation or (stored[5] or "") ~= from
  if FENCED and (moved or (held and stored[3] ~= "scheduled")) then
    -- This very claim. (Its run may be over, and forgotten; its job stays for longer.)
    return runKey and redis.call("EXISTS", runKey, jobKey) > 0 and "DONE" or "STALE"
  end
  if notBefore ~= "" and now < tonumber(notBefore) then return "EARLY" end
  if extras and extras["until"] and now >= extras["until"] then return "STALE" end
  if extras and extras.backfillAt then
    local at, is = unpack(redis.call("HMGET", backfillKey, "at", "state"))
    -- It may have been cancelled since, or be gone.
    if at ~= extras.backfillAt or is ~= "running" then return "STALE" end
  end
  if extras and extras.awaited and not isOpen(named, openKey, extras.awaited) then return "STALE" end
  if GUARDED and reckoned and revived(named, openKey, reckoned, firstJob, COMPLETED) then return "OVERLAP" end
  if runKey then checkOpen(named, openKey, run) end
  return nil, named
end

-- What few tasks need besides: skipped times, fields to remove, a backfill's step, runs to cancel.
local function commitExtras(extras, taskKey, ledgerKey, backfillKey, name, cursor)
  if extras.backfillSet then redis.call("HSET", backfillKey, unpack(extras.backfillSet)) end
  if extras.remove then redis.call("HDEL", taskKey, unpack(extras.remove)) end
  if extras.lingers then addEntry(runs, string.format("%.0f", now + extras.lingers), name) end
  -- A backfill has a cursor of its own.
  local decided = extras.backfillAt or cursor
  local skips, waitedUpTo = extras.skips or {}, decided and tonumber(decided)
  for i = 1, #skips, 4 do
    -- What waited has a time that is passed already: it is in no range with others.
    local waited = waitedUpTo and tonumber(skips[i + 1]) <= waitedUpTo
    record(ledgerKey, skips[i], skips[i + 1], skips[i + 2], now, node, skips[i + 3], not waited and decided)
    if not waited then decided = skips[i + 2] end
  end
end

-- Those of which more runs are open than are cancelled here.
local cancelOn = {}
local function cancelAll(name, ids)
  for i = 1, math.min(#ids, CANCEL_AT_ONCE) do cancelRun(ARGV[6] .. ids[i], KEYS[3], ids[i], now, node, ARGV[7], queue) end
  if #ids > CANCEL_AT_ONCE then cancelOn[#cancelOn + 1] = name end
end

local function commit(item)
  local owner, id, generation, from, following, notBefore, held, guarded, lookAt, cursor, nominal, fired, over, extras, run, template,
    details, key, at, dueAt, trigger, more, payload = struct.unpack(ITEM, item)
  local name = owner .. "/" .. id
  held, guarded, extras = held == "1", guarded == "1", extras ~= "" and cjson.decode(extras)
  local taskKey, openKey = KEYS[k + 1], KEYS[k + 2]
  k = k + 2
  local runKey, jobKey, ledgerKey, backfillKey
  if run ~= "" then
    runKey, jobKey = KEYS[k + 1], KEYS[k + 2]
    k = k + 2
  end
  if extras and extras.skips then
    k = k + 1
    ledgerKey = KEYS[k]
  end
  if extras and extras.backfillAt then
    k = k + 1
    backfillKey = KEYS[k]
  end
  local firstJob, reckoned = k, {}
  for id in string.gmatch(over, "%S+") do
    k = k + 1
    reckoned[k - firstJob] = id
  end

  local refused, named = check(taskKey, openKey, run, runKey, jobKey, generation, from, held, notBefore, extras, backfillKey,
    guarded and run ~= "" and reckoned, firstJob)
  if refused then return refused end
  if run ~= "" then
    local data = jobData(payload, queue, owner, id, key, at, dueAt, following, trigger, run, more, nowText)
    local failure = enqueue(templates[tonumber(template)], run, data, jobKey)
    if failure then return "ERROR " .. failure end
  end
  -- Before the cursor moves.
  local before = ledgerKey and redis.call("HGET", taskKey, "cursor")
  if extras and extras.cancel then cancelAll(name, openIds(named, openKey, CANCEL_AT_ONCE)) end
  local open = run ~= "" and addOpen(named, openKey, run, now)
  if open and held and cursor ~= "" and nominal ~= "" and fired ~= "" and not extras then
    -- What nearly all are.
    redis.call("HSET", taskKey, "gen", following, "cursor", cursor, "nominal", nominal, "fired", fired, "open", open)
  else
    local set = extras and extras.set or {}
    local function write(field, value)
      set[#set + 1] = field
      set[#set + 1] = value
    end
    write("gen", following)
    if cursor ~= "" then write("cursor", cursor) end
    if nominal ~= "" then write("nominal", nominal) end
    if fired ~= "" then write("fired", fired) end
    if open then write("open", open) end
    -- Of a claim that enqueues, the run's record tells whether it was made.
    if not held then write("asked", withAsked(taskKey)) elseif not open then write("token", token) end
    redis.call("HSET", taskKey, unpack(set))
  end
  if lookAt == "" then
    notDue[#notDue + 1] = name
  else
    addEntry(due, lookAt, name)
  end
  if run ~= "" then
    recordRun(runKey, name, nowText, node, details)
    addEntry(runs, extras and extras.waits and waitedForAt or checkAt, run)
  end
  if extras then commitExtras(extras, taskKey, ledgerKey, backfillKey, name, before) end
  return "OK"
end

local out = { now }
for n = 1, #ARGV - 8 do
  local status, failed = tried(commit, ARGV[8 + n])
  out[n + 1] = status or "ERROR " .. failed
end

bullFinish()
if #due > 0 then redis.call("ZADD", KEYS[1], unpack(due)) end
if #notDue > 0 then redis.call("ZREM", KEYS[1], unpack(notDue)) end
if #runs > 0 then redis.call("ZADD", KEYS[3], unpack(runs)) end
rearm(KEYS[2], shard, KEYS[1])
rearm(KEYS[2], "r", KEYS[3])
for _, name in ipairs(cancelOn) do out[#out + 1] = name end
return out
