-- Hands the items that the time limit of an earlier run left to a run of the same task: to one only, unless that one ended without items.
--
-- A.id: the run that asks; A.of: the earlier run, "" the newest that left any
-- Returns: the earlier run, "" if it left none, or another run has them
local left = A.of ~= "" and A.of or redis.call("HGET", K.stats, "left")
if not left or redis.call("EXISTS", K.run) == 0 or redis.call("HGET", ours(F.keys.run, left), "state") ~= "final" then return "" end
local items = ours(F.keys.items, left)
local count, by = unpack(redis.call("HMGET", items, "left", "by"))
if not count then return "" end
if by and by ~= A.id then
  local isOver = redis.call("HGET", ours(F.keys.run, by), "state") == "final"
  if not isOver or redis.call("EXISTS", ours(F.keys.items, by)) == 1 then return "" end
end
redis.call("HSET", items, "by", A.id)
return left
