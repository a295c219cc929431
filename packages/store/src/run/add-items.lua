-- Adds items of a run as children of its job, each with its record. Only the attempt that has the run's job may do so.
--
-- An item with a record has been added before: by a call whose answer was lost, or by an earlier attempt. A job without a record that is a
-- child of this run's job is left from an earlier round. Any other job with an item's id belongs to something else, and nothing is added.
--
-- K.parent: the run's job; K.left, K.succeeded, K.failed: BullMQ's keys of its children
-- A.fence: of the attempt; A.token: with which it took the run's job; A.most: attempts that each item may have
-- A.round: fence of the attempt that began this round. A run that is retried from outside does all its items again, so the
-- records and results of an earlier round are deleted
-- A.ends: end of the run's time limit, "" none
-- A.template: the job template of all, as JSON in a list; A.common: the end of their data, as JSON after a comma
-- Each: job, id: of its job; data: as JSON; since: the last words of its record (lib/item.lua)
-- Returns: { "OK", number of items that the run has } | { "LOST" } (another attempt has the run, or it is gone) | { "TAKEN", id } |
--          { "ERROR", text }
if redis.call("HGET", K.run, "fence") ~= A.fence then return { "LOST" } end
if redis.call("EXISTS", K.parent) == 0 or not isHeldWith(K.parent, A.token) then return { "LOST" } end
local again = redis.call("HGET", K.items, "round") == A.round
local fresh, count = {}, 0
for item in eachItem do
  if not again or redis.call("HEXISTS", K.items, item.index) == 0 then
    item.isThere = redis.call("EXISTS", item.job) == 1
    if item.isThere and redis.call("HGET", item.job, "parentKey") ~= K.parent then return { "TAKEN", item.id } end
    fresh[#fresh + 1] = item
    count = math.max(count, item.index + 1)
  end
end
bullQueue(K.bull)

redis.call("HSET", K.items, "round", A.round, "most", A.most)
if not again then
  redis.call("UNLINK", K.items, K.succeeded, K.failed)
  redis.call("HSET", K.items, "round", A.round, "most", A.most)
end
if A.ends ~= "" then redis.call("HSET", K.items, "ends", A.ends) end
local template, failure = cjson.decode(A.template)[1], nil
local waiting = "waiting " .. string.format("%d", nowMs()) .. " - - 0 - - "
for _, item in ipairs(fresh) do
  local data = '{"child":true,"index":' .. item.index .. ',"item":' .. item.data .. A.common .. "}"
  if not item.isThere then failure = enqueue(template, item.id, data, item.job) end
  if failure then break end
  redis.call("HSET", K.items, item.index, waiting .. item.since .. "\n", "d" .. item.index, item.data)
end
bullFinish()
redis.call("HSET", K.items, "n", math.max(count, tonumber(redis.call("HGET", K.items, "n") or 0)))
if failure then return { "ERROR", failure } end
return { "OK", redis.call("SCARD", K.left) + redis.call("HLEN", K.succeeded) + redis.call("HLEN", K.failed) }
