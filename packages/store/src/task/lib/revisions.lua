-- Definitions of a task that were replaced, newest first; bounded. Each is JSON: [number, until, by, fields]: when it was replaced, and the author
-- of the put that stored it (false: unknown). Numbers count from 1; the definition that is in force has the next one. The definition of a
-- deleted task has a fifth part: the state that the task had; one that a change of many tasks replaced or deleted has a sixth: the change's id.
local function keepRevision(key, now, by, fields, state, change)
  if change == "" then change = nil end
  local newest = redis.call("LINDEX", key, 0)
  local number = newest and tonumber(string.match(newest, "^%[(%d+)")) or 0
  redis.call("LPUSH", key, cjson.encode({ number + 1, now, by, fields, state or change and false, change }))
  local bytes = 0
  for i, kept in ipairs(redis.call("LRANGE", key, 0, F.revisions.most)) do
    bytes = bytes + #kept
    if i > 1 and (i > F.revisions.most or bytes > F.revisions.bytes) then return redis.call("LTRIM", key, 0, i - 2) end
  end
end

-- Returns the definition that a task's hash holds, the number of its fields, and the whole hash.
local function definitionOf(taskKey)
  local flat, fields, n = redis.call("HGETALL", taskKey), {}, 0
  for i = 1, #flat, 2 do
    if not F.bookkeeping[flat[i]] then
      fields[flat[i]] = flat[i + 1]
      n = n + 1
    end
  end
  return fields, n, flat
end

-- The deleted tasks of this one's owner. An owner who deletes many loses only the oldest of these.
local function deletedOf(name) return ours(F.keys.deletedOf, ownerOf(name)) end

-- Takes a task from the deleted ones, because it was put again or is forgotten. Returns whether it was one of them.
local function unlistDeleted(name)
  redis.pcall("ZREM", deletedOf(name), name)
  return redis.pcall("ZREM", K.deleted, name) == 1
end

local function forgetDeleted(name)
  unlistDeleted(name)
  redis.call("DEL", ours(F.keys.revisions, name))
end

-- Keeps the definition of a deleted task as its only revision, for a while: so that it can be put again.
local function keepDeleted(key, now, author, name, fields, state, change)
  keepRevision(key, now, author, fields, state, change)
  redis.call("LTRIM", key, 0, 0)
  redis.call("ZADD", K.deleted, now, name)
  redis.call("ZADD", deletedOf(name), now, name)
  for _, kept in ipairs({ key, K.deleted, deletedOf(name) }) do redis.call("PEXPIRE", kept, F.deleted.ms) end
  -- Expired entries do not count: each deletion removes some of them.
  local last = string.format("%d", now - F.deleted.ms)
  for _, past in ipairs(redis.call("ZRANGEBYSCORE", K.deleted, "-inf", last, "LIMIT", 0, 10)) do forgetDeleted(past) end
  local own = redis.call("ZCARD", deletedOf(name))
  if own > F.deleted.most or own > 1 and redis.call("ZCARD", K.deleted) > F.deleted.ofAll then
    forgetDeleted(redis.call("ZRANGE", deletedOf(name), 0, 0)[1])
  end
  return true
end
