-- Creates or changes tasks of one queue. What the caller believes about each (absent, or a generation) is checked; a
-- task that is otherwise comes back as it is, for the caller to decide again.
--
-- KEYS: 1 tasks, 2 next, 3-10 the eight due indexes, 11 expected, 12 runs, 13 priorities, then for each task: task, ledger
-- ARGV: 1 prefix of tag sets, 2 wake channel, 3 queue, 4 number of tasks, 5 prefix of the sets of tasks by shared calendar,
--       6 revision of the shared calendars that the plans were made with, 7 a finished task lingers for (ms) where it says nothing,
--       8 prefix of the sets of runs that deleted tasks left
--       then for each: local name, shard, believed generation ("" absent), state, cursor, nominal, due ("" none),
--       fresh ("1": due was computed from the present), first and last owed time that an edited schedule gives up
--       ("" none; the last one is the new cursor), number of definition fields, then field and value of each
-- Returns: { now, answer of each }: { "CREATED" | "UPDATED" } or { "UNCHANGED", state, due ("" none) } or
--          { "CONFLICT", field, value, … } or, of a new task whose due time has passed meanwhile, { "LATE" } or { "ERROR", text },
--          or { "LEFT" }: a deleted task of that name has left runs, to be cleared first
local now = nowMs()
local tagPrefix, channel, queue, count = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local calendarPrefix, revision = ARGV[5], ARGV[6]
local a = 8
local function arg()
  a = a + 1
  return ARGV[a]
end

-- BOOKKEEPING (task-codec.ts) names the fields that are not the definition's.
local function definitionOf(taskKey)
  local flat, fields, n = redis.call("HGETALL", taskKey), {}, 0
  for i = 1, #flat, 2 do
    if not BOOKKEEPING[flat[i]] then
      fields[flat[i]] = flat[i + 1]
      n = n + 1
    end
  end
  return fields, n, flat
end

-- Moves a task between sets whose names are a comma-separated field.
local function setMembership(prefix, name, before, after, score)
  local keep = {}
  for set in string.gmatch(after or "", "[^,]+") do
    keep[set] = true
    redis.call("ZADD", prefix .. set, score, name)
  end
  for set in string.gmatch(before or "", "[^,]+") do
    if not keep[set] then redis.call("ZREM", prefix .. set, name) end
  end
end

-- Fails where others have written in place of such a set.
local function tryMembership(prefix, ...)
  for _, list in ipairs({ ... }) do
    for set in string.gmatch(list, "[^,]+") do redis.call("ZCARD", prefix .. set) end
  end
end

local touched = {}
local function put(taskKey, ledgerKey)
  local name, shard, believed, state = arg(), tonumber(arg()), arg(), arg()
  local cursor, nominal, due, fresh, from, to = arg(), arg(), arg(), arg(), arg(), arg()
  local definition, size = {}, tonumber(arg())
  local flat = {}
  for i = 1, size do
    local field, value = arg(), arg()
    definition[field] = value
    flat[#flat + 1] = field
    flat[#flat + 1] = value
  end

  local stored, storedSize, storedFlat = definitionOf(taskKey)
  local gen, was = unpack(redis.call("HMGET", taskKey, "gen", "state"))
  local same = gen and storedSize == size
  if same then
    for field, value in pairs(definition) do
      if stored[field] ~= value then same = false end
    end
  end

  if same then
    local is = redis.call("HMGET", taskKey, "state", "due", "nominal")
    return { "UNCHANGED", is[1], is[2] or is[3] or "" }
  end
  if (gen or "") ~= believed then return { "CONFLICT", unpack(storedFlat) } end
  if fresh == "1" and nominal ~= "" and tonumber(nominal) <= now then
    -- What an edited schedule gives up must be reckoned anew as well.
    return gen and { "CONFLICT", unpack(storedFlat) } or { "LATE" }
  end

  if not gen and redis.call("EXISTS", ARGV[8] .. name) == 1 then return { "LEFT" } end

  -- First what fails where others have written: then nothing is half done.
  tryMembership(tagPrefix, stored.tags or "", definition.tags or "")
  if fresh == "1" then tryMembership(calendarPrefix, stored.calendars or "", definition.calendars or "") end
  if from ~= "" then record(ledgerKey, "superseded", from, to, now, "put", "-", redis.call("HGET", taskKey, "cursor")) end
  setMembership(tagPrefix, name, stored.tags, definition.tags, 0)
  -- The calendars are the schedule's: with it unchanged, the revision it was planned with stands.
  if fresh == "1" then setMembership(calendarPrefix, name, stored.calendars, definition.calendars, revision) end
  touched[shard] = true
  local answer
  if gen then
    answer = { "UPDATED" }
    for field in pairs(stored) do
      if definition[field] == nil then redis.call("HDEL", taskKey, field) end
    end
    gen = string.format("%.0f", tonumber(gen) + 1)
    redis.call("HSET", taskKey, "updated", now)
  else
    answer = { "CREATED" }
    gen = nowMicros()
    redis.call("HSET", taskKey, "created", now)
    redis.call("ZADD", KEYS[1], 0, name)
  end
  redis.call("HSET", taskKey, "gen", gen, "state", state, unpack(flat))
  if cursor ~= "" then redis.call("HSET", taskKey, "cursor", cursor) end
  if fresh == "1" then redis.call("HDEL", taskKey, "wait") end
  if definition.calendars and fresh == "1" then redis.call("HSET", taskKey, "calrev", revision) end
  setPlan(taskKey, KEYS[3 + shard], name, state, nominal, due, now)
  if state == "finished" then
    redis.call("ZADD", KEYS[12], now + (definition.linger or ARGV[7]), name)
    rearm(KEYS[2], "r", KEYS[12])
  end
  -- Of a finished task nothing was expected.
  if definition.expect ~= stored.expect or (definition.expect and was == "finished" and state == "scheduled") then
    redis.call("ZREM", KEYS[11], name)
    if definition.expect and state == "scheduled" then redis.call("ZADD", KEYS[11], now + definition.expect, name) end
    rearm(KEYS[2], "e", KEYS[11])
  end
  if definition.priority ~= stored.priority then setPriority(KEYS[13], name, definition.priority) end
  return answer
end

local out = { now }
for n = 1, count do
  local answer, failed = tried(put, KEYS[12 + 2 * n], KEYS[13 + 2 * n])
  out[n + 1] = answer or { "ERROR", failed }
end

for shard in pairs(touched) do rearmAndWake(KEYS[2], shard, KEYS[3 + shard], channel, queue) end
return out
