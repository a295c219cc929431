-- Definitions of a task that were replaced, newest first; bounded. Each is JSON: [number, until, by, fields]: when it was replaced, and the author
-- of the put that stored it (false: unknown). Numbers count from 1; the definition that is in force has the next one. The definition of a
-- deleted task has a fifth part: the state that the task had; one that a change of many tasks replaced has a sixth: the change's id.
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

-- Keeps the definition of a deleted task as its only revision, for a while: so that it can be put again.
local function keepDeleted(key, now, author, name, fields, state)
  keepRevision(key, now, author, fields, state)
  redis.call("LTRIM", key, 0, 0)
  redis.call("ZADD", K.deleted, now, name)
  for _, kept in ipairs({ key, K.deleted }) do redis.call("PEXPIRE", kept, F.deleted.ms) end
  if redis.call("ZCARD", K.deleted) > F.deleted.most then
    redis.call("DEL", ours(F.keys.revisions, redis.call("ZPOPMIN", K.deleted)[1]))
  end
  return true
end
