-- Commits a batch of decisions about tasks of one queue: claims, manual triggers, steps of backfills. Tasks are
-- independent: one that fails a check is left unchanged, and its answer names the check. Everything is checked before
-- the first write, because Lua has no rollback.
--
-- K.bull: BullMQ's keys (bullmq.ts: BULL_KEYS); K.frozen: the freezes; K.held: tasks that they hold; K.late: see keys.ts
-- A.shards: the shards of the items, separated by spaces; K.due: their indexes, in that order
-- A.templates: job templates by number, as JSON
-- K.asked: of a manual trigger (keys.ts), kept for A.remember ms; A.created: creation time of its task
-- K.items: of a run whose failed items the run does again; A.noted: their note of an earlier new run at the decision, "" none
-- Each: over: ids of the open runs that the decision took for over
--       frozen: revision of the freezes at the decision, "" none; before: start of the next freeze, "" none
--       generation, from: generation and cursor ("" none) of the task at the decision; following: the next generation
--       asOf: time as of which it was decided, maybe ahead: earliest time of the commit
--       held: "1" the task must be scheduled; guarded: "1" no live run may exist
--       checkAt: time of the next check, "" none until an event asks for one
--       cursor, nextNominal, fired: "" unchanged
--       extras: rare parts as JSON, "" none (CommitExtras in pack.ts)
--       run: id of the run that is enqueued, "" none; template: number of its template; details, rules: of the run (recordRun)
--       key, nominal, jobDue, trigger, more, payload: see jobData (lib/enqueue.lua)
-- Returns: { now, microseconds that the script took, time of the first task of each of A.shards ("-" none), separated by spaces, status of each task, then names of tasks of which more runs are to be cancelled (cancel-open.lua) }
--          status: OK | DONE | STALE | EARLY | OVERLAP | LIMITED (its owner has as many runs as it may) | ERROR <text>
-- Redis 6.2 has no os.clock, and TIME stands still during the scripts of newer versions.
local os = rawget(_G, "os")
local began = os and os.clock()
local function took()
  if os then return (os.clock() - began) * 1e6 end
  local at = redis.call("TIME")
  return (at[1] - time[1]) * 1e6 + at[2] - time[2]
end
local now = nowMs()
-- Numbers are made text once: Redis would do it again for each command.
local nowText = string.format("%d", now)
local token, node = A.token, A.node
local firstLookAt, waitedForAt = string.format("%d", now + F.firstLook), string.format("%d", now + F.waitedFor)
bullQueue(K.bull)

local templates = bullTemplates(A.templates, now)

-- A freeze was added, lifted or began since the decision: decide again.
local revision, most = unpack(redis.call("HMGET", K.frozen, "rev", "most"))
knowQuotas(most)
local function outdated(item)
  return THAWED and ((revision or "") ~= item.frozen or item.before ~= "" and now >= tonumber(item.before))
end

-- The index entries of all tasks are written together, at the end.
local shards, runs = {}, {}
for shard in string.gmatch(A.shards, "%d") do shards[#shards + 1] = { name = shard, key = K.due[#shards + 1], due = {}, notDue = {} } end
local shardOf = {}
for _, shard in ipairs(shards) do shardOf[shard.name] = shard end

-- Returns the name of the failed check, or nil; the task's `open` (lib/open.lua); its state.
local function check(item, name, held, extras, guarded, reckoned)
  local known, generation, state, named, cursor = unpack(redis.call("HMGET", item.task, "token", "gen", "state", "open", "cursor"))
  if known == token then return "DONE" end
  -- A Redis that lost its last moments counts the same generations again: an earlier decision has another cursor.
  local moved = generation ~= item.generation or (cursor or "") ~= item.from
  if FENCED and (moved or (held and state ~= "scheduled")) then
    -- A resend of this commit. Its run may be over and deleted; its job stays for longer.
    local run = item.run
    return run ~= "" and redis.call("EXISTS", ours(F.keys.run, run), bullKey(run)) > 0 and "DONE" or "STALE"
  end
  if outdated(item) then return "STALE" end
  if TIMELY and now < tonumber(item.asOf) then return "EARLY" end
  if K.items then
    local count, again = unpack(redis.call("HMGET", K.items, "n", "again"))
    if not count or (again or "") ~= A.noted then return "STALE" end
  end
  if extras and extras["until"] and now >= extras["until"] then return "STALE" end
  if extras and extras.backfill then
    local at, is = unpack(redis.call("HMGET", ours(F.keys.backfill, extras.backfill), "at", "state"))
    -- It may have been cancelled or deleted since.
    if at ~= extras.backfillAt or is ~= "running" then return "STALE" end
  end
  if extras and extras.awaited and not isOpen(named, item.open, extras.awaited) then return "STALE" end
  if GUARDED and guarded and revived(name, named, item.open, reckoned, itemCount) then return "OVERLAP" end
  if item.run ~= "" then checkOpen(named, item.open, item.run) end
  return nil, named, state
end

-- Writes the parts that few tasks have: skipped times, fields to remove, a backfill's step.
local function commitExtras(item, extras, name, cursor)
  if extras.backfillSet then redis.call("HSET", ours(F.keys.backfill, extras.backfill), unpack(extras.backfillSet)) end
  if extras.remove then redis.call("HDEL", item.task, unpack(extras.remove)) end
  -- A backfill has a cursor of its own.
  local decided = extras.backfillAt or cursor
  local skips, waitedUpTo = extras.skips or {}, decided and tonumber(decided)
  for i = 1, #skips, 4 do
    -- A pending occurrence has a time before the cursor, so it never extends a range.
    local waited = waitedUpTo and tonumber(skips[i + 1]) <= waitedUpTo
    -- Skips after the enqueued time do not extend a range from before it.
    if item.run ~= "" and decided and tonumber(item.nominal) > tonumber(decided) and tonumber(skips[i + 1]) > tonumber(item.nominal) then
      decided = item.nominal
    end
    local times = record(ours(F.keys.ledger, name), skips[i], skips[i + 1], skips[i + 2], now, node, skips[i + 3], not waited and decided,
      i == #skips - 3 and extras.note or nil)
    if extras.skipsInARow and F.alertedSkips[skips[i]] and times >= extras.skipsInARow then
      incident({ kind = "skipped", task = name, at = now, message = times .. " in a row: " .. skips[i] })
    end
    if not waited then decided = skips[i + 2] end
  end
end

-- Time of the first check of a run that is enqueued or cancelled.
local firstRun = math.huge
-- Tasks with more open runs than one script cancels.
local cancelOn = {}
local function cancelAll(name, ids)
  firstRun = now
  for i = 1, math.min(#ids, CANCEL_AT_ONCE) do cancelRun(ids[i], ours(F.keys.run, ids[i]), now, node) end
  if #ids > CANCEL_AT_ONCE then cancelOn[#cancelOn + 1] = name end
end

-- Writes the task's new state and times. `open`: its open runs from here on, false: as before.
local function write(item, name, held, extras, open, state)
  if open and held and item.cursor ~= "" and item.nextNominal ~= "" and item.fired ~= "" and not extras then
    -- The usual case.
    return redis.call("HSET", item.task, "gen", item.following, "cursor", item.cursor, "nominal", item.nextNominal,
      "fired", item.fired, "open", open)
  end
  local set = extras and extras.set or {}
  add(set, "gen", item.following)
  if item.cursor ~= "" then add(set, "cursor", item.cursor) end
  if item.nextNominal ~= "" then add(set, "nominal", item.nextNominal) end
  if item.fired ~= "" then add(set, "fired", item.fired) end
  if open then add(set, "open", open) end
  -- For a commit that enqueues, the run's record says whether it was made.
  if not open then add(set, "token", token) end
  local to = extras and extras.state
  if to then addState(state, to, now, set, {}) end
  redis.call("HSET", item.task, unpack(set))
  if to then
    local task = { task = item.task, name = name }
    local is = readTask(task)
    is.state = state
    enterState(task, is, to, now, {})
  end
end

-- Owners of tasks that were claimed without a run.
local unused = {}
-- Whether a node has claimed a task, and not a client or a backfill.
local claims = false

local function commit(item)
  local name, run = item.owner .. "/" .. item.id, item.run
  item.task, item.open = ours(F.keys.task, name), ours(F.keys.open, name)
  local held, guarded, extras = item.held == "1", item.guarded == "1", item.extras ~= "" and cjson.decode(item.extras)
  local shard, reckoned = shardOf[item.shard], {}
  for id in string.gmatch(item.over, "%S+") do reckoned[#reckoned + 1] = id end

  local refused, named, state = check(item, name, held, extras, guarded and run ~= "", reckoned)
  if refused then return refused end
  if run ~= "" and not hasPlace(item.owner) then
    if held then
      waitForPlace(item.owner, item.shard, name, item.nominal)
      add(shard.due, string.format("%d", now + F.placeWait), name)
    end
    return "LIMITED"
  end
  if run ~= "" then
    local trace = extras and extras.trace
    local data = jobData(item, run, item.following, nowText, trace)
    local failure = enqueue(templates[item.template], run, data, bullKey(run), trace)
    if failure then return "ERROR " .. failure end
  end
  -- Read before the write below moves the cursor.
  local before = extras and extras.skips and redis.call("HGET", item.task, "cursor")
  if extras and extras.cancel then cancelAll(name, openIds(named, item.open, CANCEL_AT_ONCE)) end
  write(item, name, held, extras, run ~= "" and addOpen(named, item.open, run, now), state)
  if item.checkAt == "" then
    shard.notDue[#shard.notDue + 1] = name
  else
    add(shard.due, item.checkAt, name)
  end
  claims = claims or held
  waitNoMore(item.owner, item.shard, name)
  -- It may have been woken for a place that it does not use.
  if run == "" and held then unused[item.owner] = true end
  if run ~= "" then
    recordRun(ours(F.keys.run, run), name, nowText, node, item.details, item.rules)
    takePlace(item.owner, run, now)
    local waits = extras and extras.waits
    firstRun = math.min(firstRun, now + (waits and F.waitedFor or F.firstLook))
    add(runs, waits and waitedForAt or firstLookAt, run)
  end
  if extras and extras.frozen and item.checkAt ~= "" then
    redis.call("ZADD", K.held, now, item.shard .. " " .. name)
  end
  if extras then commitExtras(item, extras, name, before) end
  if K.items then redis.call("HSET", K.items, "again", nowText .. " " .. run) end
  if K.asked then
    redis.call("SET", K.asked, table.concat({ nowText, token, run ~= "" and run or "-", A.created }, " "), "PX", A.remember)
  end
  return "OK"
end

local out = { now, 0, "" }
for item in eachItem do
  local status, failed = tried(commit, item)
  out[#out + 1] = status or "ERROR " .. failed
end

bullFinish()
for _, shard in ipairs(shards) do
  if #shard.due > 0 then redis.call("ZADD", shard.key, unpack(shard.due)) end
  if #shard.notDue > 0 then redis.call("ZREM", shard.key, unpack(shard.notDue)) end
end
if #runs > 0 then redis.call("ZADD", K.runs, unpack(runs)) end
for owner in pairs(unused) do tried(wakeForPlaces, owner, now) end
local heads, oldest = {}, now
for i, shard in ipairs(shards) do
  heads[i] = rearm(shard.name, shard.key) or "-"
  oldest = math.min(oldest, tonumber(heads[i]) or now)
end
if claims and oldest < now - F.overdue then
  local since = behindSince(now) or string.format("%d", math.max(oldest, now - F.away))
  redis.call("SET", K.late, since .. " " .. nowText, "PX", F.late)
end
out[3] = table.concat(heads, " ")
if firstRun < math.huge then rearmBy(F.parts.runs, string.format("%d", firstRun)) end
wakeForMoved()
for _, name in ipairs(cancelOn) do out[#out + 1] = name end
out[2] = math.floor(took())
return out
