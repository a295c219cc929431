-- The runs that a deleted task left are nobody's: a sorted set of them each (`gone`) is cleared in bounded steps, by whoever
-- deletes, or by a node where that one is gone.

-- Takes records and jobs of the set's first runs. A job that a worker holds is left to the reconciler: it has a place among
-- `runs`, as the set itself has by its name (`mark`) until it is empty. Returns how many runs it took.
local function clearRuns(mark, gone, runs, journal, repeatKey, ours, bullPrefix, most, again)
  local ids = redis.pcall("ZRANGE", gone, 0, most - 1)
  if ids.err then
    -- Someone else has written there.
    redis.call("DEL", gone)
    ids = {}
  end
  for _, id in ipairs(ids) do
    redis.call("DEL", ours .. "r:" .. id, ours .. "out:" .. id)
    redis.call("ZREM", journal, id)
    redis.call("ZREM", gone, id)
    if jobState(bullPrefix .. id) == "missing" or bullRemoveJob({ bullPrefix .. id, repeatKey }, { id, "0", bullPrefix }) == 1 then
      redis.call("ZREM", runs, id)
    else
      redis.call("ZADD", runs, again, id)
    end
  end
  if redis.call("EXISTS", gone) == 0 then redis.call("ZREM", runs, mark) end
  return #ids
end
