-- Stores items of a run that are about to be added, as waiting. Those that are there already and are named again are overwritten: their
-- jobs were not added.
--
-- A.fence: of the attempt that generated them; A.most: attempts that each may have
-- Each: index; data: as JSON
-- Returns: 1, or 0 if another attempt has taken the run over or its record is gone
if redis.call("HGET", K.run, "fence") ~= A.fence then return 0 end
local waiting = "waiting " .. string.format("%.0f", nowMs()) .. " - - 0 - -\n"
local count = tonumber(redis.call("HGET", K.items, "n") or 0)
for item in eachItem do
  redis.call("HSET", K.items, item.index, waiting, "d" .. item.index, item.data)
  count = math.max(count, item.index + 1)
end
redis.call("HSET", K.items, "n", count, "most", A.most)
return 1
