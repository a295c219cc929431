-- Limits by owner: how many runs of one owner may be open in this queue at once. A run of an owner with a limit holds a place; a task whose
-- occurrence found none waits for one, in the order of nominal times.
local limits
local function limitOf(owner)
  if not limits then
    limits = {}
    local flat = redis.call("HGETALL", ours(F.keys.limits, ""))
    for i = 1, #flat, 2 do limits[flat[i]] = tonumber(flat[i + 1]) end
  end
  return limits[owner] or limits[F.anyOwner]
end

-- Frees the places of runs that have ended or are deleted, in case corrupt data prevented that at their end. Checks
-- `CHECKED` runs at a time.
local CHECKED = 16
local function giveBack(places)
  for _, id in ipairs(redis.call("ZRANGE", places, 0, CHECKED - 1)) do
    local state = redis.call("HGET", ours(F.keys.run, id), "state")
    if not state or state == "final" then redis.call("ZREM", places, id) end
  end
end

local full = {}
local function hasPlace(owner)
  local limit = limitOf(owner)
  if not limit or not LIMITING then return true end
  if full[owner] then return false end
  local places = ours(F.keys.places, owner)
  if redis.call("ZCARD", places) < limit then return true end
  giveBack(places)
  full[owner] = redis.call("ZCARD", places) >= limit
  return not full[owner]
end

-- Quotas of jobs that wait; nil: not read yet. `stored`: as the freezes have them, false none.
local quotas
local function knowQuotas(stored) quotas = stored and cjson.decode(stored) end

-- Whether the owner's runs count: for a limit, or for a quota.
local function counts(owner)
  if limitOf(owner) then return true end
  if quotas == nil then knowQuotas(redis.call("HGET", ours(F.keys.frozen, ""), "most")) end
  return quotas and (quotas[owner] or quotas[F.anyOwner])
end

-- Marks the run's record, so that the many runs without a place skip the step that frees one.
local function takePlace(owner, run, now)
  if not counts(owner) then return end
  redis.call("ZADD", ours(F.keys.places, owner), now, run)
  redis.call("HSET", ours(F.keys.run, run), "place", "1")
end

local function waitForPlace(owner, shard, name, nominal)
  redis.call("ZADD", ours(F.keys.waiting, owner), nominal, shard .. " " .. name)
end

local function waitNoMore(owner, shard, name)
  if limitOf(owner) then redis.call("ZREM", ours(F.keys.waiting, owner), shard .. " " .. name) end
end

-- Wakes one waiting task per free place of an owner. Tasks that are not scheduled (paused, moving, finished, deleted) cannot use a place: they
-- leave the list. Once they are scheduled again, their next claim finds a place, or waits again. At most PASSED leave it at once.
local WOKEN, PASSED = 16, 500
local function wakeForPlaces(owner, now)
  local limit = limitOf(owner)
  if not limit or not WAKING then return end
  local free = math.min(limit - redis.call("ZCARD", ours(F.keys.places, owner)), WOKEN)
  for _ = 1, PASSED do
    local first = free > 0 and redis.call("ZPOPMIN", ours(F.keys.waiting, owner))[1]
    if not first then return end
    local shard, name = string.match(first, "^(%d+) (.*)$")
    local task = { task = ours(F.keys.task, name), name = name, shard = shard, due = ours(F.keys.due, shard) }
    -- A corrupt task must not fail the end of another one's run.
    local is = redis.pcall("HMGET", task.task, "state", "moving")
    if is[1] == "scheduled" and not is[2] then
      recheck(task, now)
      free = free - 1
    end
  end
end

-- Frees a run's place, if it may hold one. Places are freed without a limit too: a limit may be set again while other counted runs are open.
local function leavePlace(name, run, held, now)
  if not held then return end
  local owner = ownerOf(name)
  if LEAVING then redis.call("ZREM", ours(F.keys.places, owner), run) end
  wakeForPlaces(owner, now)
end
