-- Definitions of a task that were replaced, newest first; bounded. Each is JSON: [number, until, by, fields]: when it was replaced, and the author
-- of the put that stored it (false: unknown). Numbers count from 1; the definition that is in force has the next one.
local function keepRevision(key, now, by, fields)
  local newest = redis.call("LINDEX", key, 0)
  local number = newest and tonumber(string.match(newest, "^%[(%d+)")) or 0
  redis.call("LPUSH", key, cjson.encode({ number + 1, now, by, fields }))
  local bytes = 0
  for i, kept in ipairs(redis.call("LRANGE", key, 0, F.revisions.most)) do
    bytes = bytes + #kept
    if i > 1 and (i > F.revisions.most or bytes > F.revisions.bytes) then return redis.call("LTRIM", key, 0, i - 2) end
  end
end
