-- Creates or changes tasks of one queue. What the caller believes about each (absent, or a generation) is checked; a
-- task that differs is returned as stored, for the caller to decide again. So the first attempt for a task that may exist passes a
-- generation that cannot be, in order to read it.
--
-- A.freezes: revision of the freezes that were copied to the queue before, "" none; A.revision: of the shared calendars that the plans were
-- made with; A.by: who puts them, "" unknown; A.trace: of an enqueue, "" none; A.change: id of the change in the log that this is a part of,
-- "" none; A.copyOf: the beginning of the mark of a copy that a move puts, "" none
-- Each: seen: newest mark of deleted tasks in its shard that the caller has seen (lib/marks.lua); gone: runs that a deleted task of that name
-- left; believed: a generation, "" absent; nominal, dueAt: "" none; fresh: "1" if due was
-- computed from the present; passedFrom, passedTo: first and last owed time that an edited schedule gives up, "" none; fields: field
-- and value of the definition; set: name of the set that the put is for, and the queue that it names; "" none
-- Returns: { now, all marks (fields and values) if an answer is LATE, answer of each }: { "CREATED" | "UPDATED" } or
--          { "UNCHANGED", state, due ("" none), rev } or { "CONFLICT", field, value, … } or, for a new task whose due time has passed
--          meanwhile, or in whose shard tasks were deleted, { "LATE" } or { "ERROR", text }, or { "THAWED" }: the queue has other freezes
--          than A.freezes, since it was empty and was cleared; or { "LEFT" }: a deleted task of that name has left runs, to be cleared first;
--          or { "TAKEN" }: the task is not a copy of that move
local now = nowMs()

-- Moves a task between sets whose names are a comma-separated field.
local function setMembership(prefix, name, before, after, score)
  local keep = {}
  for set in string.gmatch(after or "", "[^,]+") do
    keep[set] = true
    redis.call("ZADD", ours(prefix, set), score, name)
  end
  for set in string.gmatch(before or "", "[^,]+") do
    if not keep[set] then redis.call("ZREM", ours(prefix, set), name) end
  end
end

-- Fails if corrupt data is in place of such a set.
local function tryMembership(prefix, ...)
  for _, list in ipairs({ ... }) do
    for set in string.gmatch(list, "[^,]+") do redis.call("ZCARD", ours(prefix, set)) end
  end
end

local function put(item)
  local flat, definition = item.fields, {}
  for i = 1, #flat, 2 do definition[flat[i]] = flat[i + 1] end
  local stored, storedSize, storedFlat = definitionOf(item.task)
  local gen, state, cursor, nominal, due, pending, author, moving, rev, created, inSet = unpack(redis.call("HMGET", item.task, "gen", "state",
    "cursor", "nominal", "due", "pending", "updatedBy", "moving", "rev", "created", "set"))
  local same = gen and 2 * storedSize == #flat
  if same then
    for field, value in pairs(definition) do
      if stored[field] ~= value then same = false end
    end
  end
  local alike = same
  -- A put for a set takes the task over, or confirms a definition that others have put.
  if item.set ~= "" then same = same and string.find(inSet or "", item.set .. " " .. rev .. " ", 1, true) == 1 end
  if A.copyOf ~= "" then
    if gen and not string.find(moving or "", A.copyOf .. " ", 1, true) then return { "TAKEN" } end
    -- No generation is copied yet.
    moving = moving or A.copyOf .. " 0"
  end
  if same then return { "UNCHANGED", state, due or nominal or "", rev } end
  if (gen or "") ~= item.believed then return { "CONFLICT", unpack(storedFlat) } end
  if not gen and newestMark(F.deletedIn .. item.shard) ~= item.seen and ONCE then return { "LATE" } end
  if not gen and (redis.call("HGET", K.frozen, "rev") or "") ~= A.freezes then return { "THAWED" } end
  local fresh = item.fresh == "1"
  if fresh and item.nominal ~= "" and tonumber(item.nominal) <= now then
    -- Occurrences that the edited schedule gives up must be computed again as well.
    return gen and { "CONFLICT", unpack(storedFlat) } or { "LATE" }
  end
  if not gen and redis.call("EXISTS", item.gone) == 1 then return { "LEFT" } end

  -- Commands that fail on corrupt data come first, so that nothing is half done.
  tryMembership(F.keys.tagged, stored.tags or "", definition.tags or "")
  if fresh then tryMembership(F.keys.planned, stored.calendars or "", definition.calendars or "") end
  if gen and stored.type ~= definition.type then
    redis.call("ZADD", K.tasks, 0, indexed(item.name, definition.type))
    redis.call("ZREM", K.tasks, indexed(item.name, stored.type or ""))
  end
  tryMembership(F.keys.owned, string.match(inSet or "", "^%S+") or "")
  if gen and not stored.once and not alike then keepRevision(item.revisions, now, author, stored, nil, A.change) end
  if item.passedFrom ~= "" then
    record(item.ledger, "superseded", item.passedFrom, item.passedTo, now, "put", "-", cursor)
  end
  if gen then
    gen = string.format("%d", tonumber(gen) + 1)
    if not created then add(flat, "created", createdAt(created, rev) or now) end
  else
    gen = nowMicros()
    redis.call("ZADD", K.tasks, 0, indexed(item.name, definition.type))
    -- The definition of a deleted task of that name becomes its revision.
    if unlistDeleted(item.name) then redis.call("PERSIST", item.revisions) end
  end
  -- The generation of the put names this definition, and tells nothing about it.
  add(flat, "rev", gen)
  if item.set ~= "" then add(flat, "set", item.set .. " " .. gen .. " " .. now) end
  if definition.calendars and fresh then add(flat, "calrev", A.revision) end
  local is = {
    state = state or nil, expect = definition.expect, linger = definition.linger, pending = pending, jittered = due,
    due = due or nominal or "", moving = moving,
  }
  moveTask(item, is, now, {
    state = item.state, nominal = item.nominal, due = item.dueAt, gen = gen, cursor = item.passedTo, fields = flat, put = true,
    expectMoved = definition.expect ~= stored.expect,
  })
  if not state and moving then setMoving(item, moving, now) end
  for field in pairs(stored) do
    if definition[field] == nil then redis.call("HDEL", item.task, field) end
  end
  if fresh and state then redis.call("HDEL", item.task, "wait") end
  setMembership(F.keys.tagged, item.name, stored.tags, definition.tags, 0)
  noteTags(definition.tags)
  noteTags(stored.tags)
  if item.set ~= "" then setMembership(F.keys.owned, item.name, string.match(inSet or "", "^%S+"), string.match(item.set, "^%S+"), 0) end
  -- Calendars belong to the schedule: if it is unchanged, the revision that it was planned with stays.
  if fresh then setMembership(F.keys.planned, item.name, stored.calendars, definition.calendars, A.revision) end
  setAuthor(item.task, A.by, not state)
  if A.trace ~= "" then redis.call("HSET", item.task, "trace", A.trace) end
  if definition.priority ~= stored.priority then setPriority(item.name, definition.priority) end
  return { state and "UPDATED" or "CREATED" }
end

local out = { now, {} }
for item in eachItem do
  local answer, failed = tried(put, item)
  out[#out + 1] = answer or { "ERROR", failed }
  if answer and answer[1] == "LATE" then out[2] = redis.call("HGETALL", K.marks) end
end
wakeForMoved()
return out
