-- A task's runs that are not final. One alone is named by the task's own hash, in `open`: most tasks never have more, and need no
-- key for it. If there are more, or its id is long, `open` is F.inSet and they are in a sorted set by the time they were enqueued.
-- "": none now, but the task has had runs.
-- Corrupt data there is not a run (ids.ts: isRunId).
local function isRun(named) return string.find(named, "^[%w._-]+@[%w.-]+$") end

-- `named`: the task's `open`. Returns the ids of its open runs; of a set the first ones, up to `last` (from 0).
local function openIds(named, openKey, last)
  if not named or named == "" then return {} end
  if named == F.inSet then return redis.call("ZRANGE", openKey, 0, last or -1) end
  return isRun(named) and { named } or {}
end

local function isOpen(named, openKey, id)
  if named == F.inSet then return redis.call("ZSCORE", openKey, id) end
  return named == id
end

local function isAlone(named, id) return named ~= F.inSet and (not named or named == id or not isRun(named)) end

-- Fails, before anything is written, if addOpen would.
local function checkOpen(named, openKey, id)
  if not isAlone(named, id) or #id > F.longestSmallValue then redis.call("ZCARD", openKey) end
end

-- Returns the new value of the task's `open`.
local function addOpen(named, openKey, id, now)
  local alone = isAlone(named, id)
  if alone and #id <= F.longestSmallValue then return id end
  if not alone and named ~= F.inSet then redis.call("ZADD", openKey, now - 1, named) end
  redis.call("ZADD", openKey, now, id)
  return F.inSet
end

local function removeOpen(named, taskKey, openKey, id)
  if named == id then return redis.call("HSET", taskKey, "open", "") end
  redis.call("ZREM", openKey, id)
  if named == F.inSet and redis.call("EXISTS", openKey) == 0 then redis.call("HSET", taskKey, "open", "") end
end
