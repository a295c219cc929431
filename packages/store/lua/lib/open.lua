-- A task's runs that are not final. One alone is named by the task's own hash, in `open`: most tasks never have more, and need no
-- key for it. Where there are more, or its id is long, `open` is "*" and they are in a sorted set by the time they were enqueued.
-- "": none now, but the task has had runs.
local IN_SET = "*"
-- A hash with a longer value takes twice the memory.
local LONGEST = 64

-- What else someone has written there is no run.
local function isRun(named) return string.find(named, "^[%w._-]+@[%w._-]+$") end

-- `named`: what the task's `open` says. The set's first ones, up to `last` (from 0).
local function openIds(named, openKey, last)
  if not named or named == "" then return {} end
  if named == IN_SET then return redis.call("ZRANGE", openKey, 0, last or -1) end
  return isRun(named) and { named } or {}
end

local function isOpen(named, openKey, id)
  if named == IN_SET then return redis.call("ZSCORE", openKey, id) end
  return named == id
end

local function isAlone(named, id) return named ~= IN_SET and (not named or named == id or not isRun(named)) end

-- Fails, before anything is written, where addOpen would.
local function checkOpen(named, openKey, id)
  if not isAlone(named, id) or #id > LONGEST then redis.call("ZCARD", openKey) end
end

-- Returns what the task's `open` must say from here on.
local function addOpen(named, openKey, id, now)
  local alone = isAlone(named, id)
  if alone and #id <= LONGEST then return id end
  if not alone and named ~= IN_SET then redis.call("ZADD", openKey, now - 1, named) end
  redis.call("ZADD", openKey, now, id)
  return IN_SET
end

local function removeOpen(named, taskKey, openKey, id)
  if named == id then return redis.call("HSET", taskKey, "open", "") end
  redis.call("ZREM", openKey, id)
  if named == IN_SET and redis.call("EXISTS", openKey) == 0 then redis.call("HSET", taskKey, "open", "") end
end
