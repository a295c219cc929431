-- Runs that a deleted task left: each sorted set of them (`gone`) is cleared in bounded steps, by the process that
-- deletes, or by a node if that process has died.

-- Deletes records and jobs of the set's first runs. A job that a worker holds is left to the reconciler: it has an entry in K.runs, as
-- the set itself has by its name (`mark`) until it is empty. `again`: when a held job is checked again. Returns how many runs it took.
local function clearRuns(mark, gone, most, again)
  local ids = redis.pcall("ZRANGE", gone, 0, most - 1)
  if ids.err then
    -- Corrupt data.
    redis.call("DEL", gone)
    ids = {}
  end
  local taken, owner = 0, string.match(mark, "^" .. F.goneOpen .. "([^/]+)/")
  for _, id in ipairs(ids) do
    local jobKey = bullKey(id)
    local readable, state = pcall(jobState, jobKey)
    -- Corrupt data in its place is not a job.
    if not readable then state = "missing" end
    if state == "live" and not fits(id) then break end
    taken = taken + 1
    redis.call("UNLINK", ours(F.keys.run, id), ours(F.keys.output, id), ours(F.keys.items, id))
    if owner then redis.call("ZREM", ours(F.keys.places, owner), id) end
    redis.call("ZREM", K.journal, id)
    redis.call("ZREM", gone, id)
    if state == "missing" or bullRemove(id) then
      redis.call("ZREM", K.runs, id)
    else
      redis.call("ZADD", K.runs, again, id)
    end
  end
  if redis.call("EXISTS", gone) == 0 then redis.call("ZREM", K.runs, mark) end
  return taken
end
