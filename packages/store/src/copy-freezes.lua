-- Makes the namespace's freezes and quotas hold in a queue, and schedules new checks of the tasks that the previous ones held, some at a time.
--
-- A.revision, A.list: of the freezes and quotas, "" there are none; A.most: how many jobs may wait, by owner, "" any number
-- A.again: "1" the tasks that are left
-- Returns: { "OK" | "STALE" (another copy was made: lib/once.lua), number of tasks left to check: call it again }
local AT_ONCE = 500
if cameBefore() == "STALE" then return { "STALE", 0 } end
local now = string.format("%d", nowMs())
local copied = redis.call("HGET", K.frozen, "rev") or ""
if copied ~= A.revision then markChange(A.subject, A.mark) end
if A.list == "" then
  redis.call("DEL", K.frozen)
elseif copied ~= A.revision then
  redis.call("HSET", K.frozen, "rev", A.revision, "list", A.list, "at", now)
  if A.most == "" then redis.call("HDEL", K.frozen, "most") else redis.call("HSET", K.frozen, "most", A.most) end
end
-- Tasks that were held since the copy was made are held by these freezes.
local before = redis.call("HGET", K.frozen, "at") or "+inf"
-- A late copy of the first call must not check tasks that these freezes hold.
if copied == A.revision and A.again == "" then return { "OK", redis.call("ZCOUNT", K.held, "-inf", before) } end
local shards = {}
local held = redis.call("ZRANGEBYSCORE", K.held, "-inf", before, "LIMIT", 0, AT_ONCE)
for _, member in ipairs(held) do
  local shard, name = string.match(member, "^(%d+) (.*)$")
  local due = shard and ours(F.keys.due, shard)
  -- A task that was paused or deleted since has no check.
  if due and redis.call("ZADD", due, "XX", "LT", "CH", now, name) > 0 then shards[shard] = due end
end
if #held > 0 then redis.call("ZREM", K.held, unpack(held)) end
for shard, due in pairs(shards) do rearmAndWake(shard, due) end
return { "OK", redis.call("ZCOUNT", K.held, "-inf", before) }
