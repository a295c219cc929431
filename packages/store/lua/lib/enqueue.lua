-- The one place where a job is added: BullMQ's own add, then the run's record and its entries. Needs lib/bull (made
-- from BullMQ's scripts), KEYS in `bull` as bullmq.ts orders them.

-- Returns nil, or the error's text; on an error nothing is left behind.
local function enqueue(bull, prioritized, args, data, opts, jobKey)
  local add, keys = bullAddStandard, nil
  if prioritized == "1" then
    add, keys = bullAddPrioritized, bullPrioritizedKeys(bull)
  else
    keys = bullStandardKeys(bull)
  end
  local ok, result = pcall(add, keys, { args, data, opts })
  if ok and (type(result) ~= "number" or result >= 0) then return nil end
  -- Lua has no rollback. Whatever the add wrote before it failed, a job without its key is passed over by workers.
  -- (Only where there is one: a script that has written is let past maxmemory, and the next task would be half done.)
  if redis.call("EXISTS", jobKey) == 1 then redis.pcall("DEL", jobKey) end
  if type(result) == "table" then result = result.err end
  return tostring(result)
end

-- The run's record and the two sets that find it again: by task while it is not final, by time for the reconciler.
local function openRun(runKey, openKey, runsKey, id, task, now, node, details, check)
  redis.call("HSET", runKey, "state", "queued", "task", task, "enqueued", now, "node", node, "info", details)
  redis.call("ZADD", openKey, now, id)
  redis.call("ZADD", runsKey, check, id)
end
