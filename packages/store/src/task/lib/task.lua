-- The only code that moves a task: its state with all that belongs to it, its times, and its entries in indexes. test/transitions.test.ts
-- holds each way to move a task to this table.
--
--                    | to scheduled                | to paused          | to finished
-- due index          | its next check              | none               | none
-- K.expected         | now + `expect`, if it moved | none               | none
-- K.runs             | none                        | none               | now + `linger`, if it moved or was put
-- pausedAt, By, Note | none                        | set when it moved  | none
-- F.keys.inState     | none                        | its entry          | its entry
-- `updated`          | set if it was paused        | set when it moved  | set if it was paused; and by each put that changes it
--
-- A task that is held for a move to another queue (`moving`) keeps its state, and has no entry in the due index.
--
-- `task`, in all of these: { task = its hash, name, shard, due = the due index of its shard }

-- Entry of a task in the index of all names. Capital letters are followed by a copy in lower case, so that a search need not convert each name.
local function indexed(name, type)
  local entry = name .. " " .. type
  local lower = string.lower(entry)
  return lower == entry and entry or entry .. " " .. lower
end

-- Time of the next check of a task; "" none. `due`: of its next occurrence, "" none; `waits`: whether occurrences wait. A task with
-- pending occurrences is checked now, and postponed again if they must wait.
-- `moving`: the mark of its move.
local function nextCheck(state, due, waits, now, moving)
  if state ~= "scheduled" or moving then return "" end
  if waits then return string.format("%d", math.min(now, tonumber(due) or now)) end
  return due
end

-- Due indexes in which something has moved, by shard.
local moved = {}

local function setCheck(task, at)
  moved[task.shard] = task.due
  if at == "" then
    redis.call("ZREM", task.due, task.name)
  else
    redis.call("ZADD", task.due, at, task.name)
  end
end

-- Wakes nodes for all moved tasks; called at the end of a script.
local function wakeForMoved()
  for shard, due in pairs(moved) do rearmAndWake(shard, due) end
end

-- Next nominal time ("" none) and due time; the hash has the latter only if it is another one (jitter). `jittered`: whether it has one now.
local function setTimes(task, nominal, due, jittered)
  if nominal == "" then
    redis.call("HDEL", task.task, "nominal", "due")
  elseif nominal == due then
    redis.call("HSET", task.task, "nominal", nominal)
    if jittered then redis.call("HDEL", task.task, "due") end
  else
    redis.call("HSET", task.task, "nominal", nominal, "due", due)
  end
end

-- Next time of a fixed-delay task: now + delay, but never at or before its cursor, even if the clock went back.
local function afterEnd(task, now, delay)
  local cursor = tonumber(redis.call("HGET", task.task, "cursor") or 0) or 0
  return string.format("%d", math.max(now + delay, cursor + 1))
end

-- Updates the due index from the hash.
local function recheck(task, now)
  local is = redis.call("HMGET", task.task, "state", "pending", "due", "nominal", "moving")
  setCheck(task, nextCheck(is[1], is[3] or is[4] or "", is[2], now, is[5]))
end

local function expectBy(task, at)
  redis.call("ZADD", K.expected, string.format("%d", at), task.name)
  rearm(F.parts.expected, K.expected)
end

local function expectNothing(task)
  redis.call("ZREM", K.expected, task.name)
  rearm(F.parts.expected, K.expected)
end

-- Sets the time at which a finished task is deleted.
local function lingerUntil(task, at)
  redis.call("ZADD", K.runs, string.format("%d", at), task.name)
  rearm(F.parts.runs, K.runs)
end

-- To a list of fields and values.
local function add(list, field, value)
  list[#list + 1] = field
  list[#list + 1] = value
end

-- Time of a task's creation, ms. It is stored with the first change of the definition: until then the revision, which is the generation
-- that the task began with, tells it. Nil for corrupt data.
local function createdAt(created, rev)
  rev = tonumber(rev or nil)
  return tonumber(created or nil) or rev and math.floor(rev / 1000)
end

-- A change of state is written in two steps, because the first write of a script must be one that Redis refuses when its memory is full.
-- First the fields of the hash, added to `fields`. `was`: nil for a new task; `how`: `by` and `note` of a pause, `put` (another definition).
local function addState(was, state, now, fields, how)
  local changed = was ~= state
  if changed then add(fields, "state", state) end
  if not was then return end
  if changed and state == "paused" then
    add(fields, "pausedAt", now)
    if (how.by or "") ~= "" then add(fields, "pausedBy", how.by) end
    if (how.note or "") ~= "" then add(fields, "pauseNote", how.note) end
  end
  if how.put or changed and (state == "paused" or was == "paused") then add(fields, "updated", now) end
end

-- Then the rest. `is`: `state` nil for a new task; `expect` and `linger` as they are from here on; `how`: `put`, `expectMoved`.
local function enterState(task, is, state, now, how)
  local was = is.state
  local changed = was ~= state
  if changed and was and was ~= "scheduled" then redis.call("ZREM", ours(F.keys.inState, was), task.name) end
  if changed and state ~= "scheduled" then redis.call("ZADD", ours(F.keys.inState, state), 0, task.name) end
  if changed and was == "paused" then redis.call("HDEL", task.task, "pausedAt", "pausedBy", "pauseNote") end
  if state == "scheduled" and is.expect then
    if changed or how.expectMoved then expectBy(task, now + is.expect) end
  elseif was == "scheduled" and (is.expect or how.expectMoved) then
    expectNothing(task)
  end
  if state == "finished" then
    if changed or how.put then lingerUntil(task, now + (is.linger or F.linger)) end
  elseif was == "finished" then
    redis.call("ZREM", K.runs, task.name)
    rearm(F.parts.runs, K.runs)
  end
end

-- Reads the fields of a task that moveTask needs.
local function readTask(task)
  local state, expect, linger, pending, due, nominal, moving = unpack(redis.call("HMGET", task.task, "state", "expect", "linger", "pending",
    "due", "nominal", "moving"))
  return {
    state = state or nil, expect = expect or nil, linger = linger or nil, pending = pending, jittered = due, due = due or nominal or "",
    moving = moving,
  }
end

-- Moves a task. `is`: as readTask has it. `change`: state (nil: as it is), nominal and due ("" none; nil: as they are), gen (nil: counted
-- up), cursor ("" or nil: as it is), pending (nil: as it is), fields (a list of others that are set), `by`, `note`, `put`, `expectMoved`.
local function moveTask(task, is, now, change)
  local fields, state = change.fields or {}, change.state or is.state
  if change.gen then add(fields, "gen", change.gen) end
  if (change.cursor or "") ~= "" then add(fields, "cursor", change.cursor) end
  if change.pending then add(fields, "pending", change.pending) end
  addState(is.state, state, now, fields, change)
  if not change.gen then redis.call("HINCRBY", task.task, "gen", 1) end
  if #fields > 0 then redis.call("HSET", task.task, unpack(fields)) end
  enterState(task, is, state, now, change)
  if change.due then setTimes(task, change.nominal, change.due, is.jittered) end
  setCheck(task, nextCheck(state, change.due or is.due, change.pending or is.pending, now, is.moving))
end

-- Marks a task as held for a move to or from another queue; nil: the move has ended.
local function setMoving(task, mark, now)
  if mark then
    redis.call("HSET", task.task, "moving", mark)
    redis.call("ZADD", ours(F.keys.inState, "moving"), "NX", now, task.name)
  else
    redis.call("HDEL", task.task, "moving")
    redis.call("ZREM", ours(F.keys.inState, "moving"), task.name)
  end
end

-- Stores the author of a put: "" unknown, which takes no memory.
local function setAuthor(taskKey, by, isNew)
  if by == "" then
    if not isNew then redis.call("HDEL", taskKey, "updatedBy") end
  elseif isNew then
    redis.call("HSET", taskKey, "createdBy", by, "updatedBy", by)
  else
    redis.call("HSET", taskKey, "updatedBy", by)
  end
end

-- Only tasks that have a priority are listed. `priority`: false or nil, none.
local function setPriority(name, priority)
  if priority then
    redis.call("HSET", K.priorities, name, priority)
  else
    redis.call("HDEL", K.priorities, name)
  end
end

-- Lists each of these tags (comma-separated) as long as a task has it. Corrupt data in place of that list costs suggestions only.
local function noteTags(tags)
  for tag in string.gmatch(tags or "", "[^,]+") do
    -- An error is a table: foreign data in place of the tasks of a tag.
    local count = redis.pcall("ZCARD", ours(F.keys.tagged, tag))
    if type(count) == "number" and count > 0 then
      redis.pcall("ZADD", ours(F.keys.tags, ""), 0, tag)
    else
      redis.pcall("ZREM", ours(F.keys.tags, ""), tag)
    end
  end
end

-- A task was deleted: removes it from all indexes.
local function unindexTask(task)
  setCheck(task, "")
  expectNothing(task)
  redis.call("ZREM", K.runs, task.name)
  rearm(F.parts.runs, K.runs)
  for _, state in ipairs({ "paused", "finished", "moving" }) do redis.call("ZREM", ours(F.keys.inState, state), task.name) end
  setPriority(task.name, nil)
end
