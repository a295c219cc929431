-- Removes many finished jobs with a few commands for all; BullMQ's own remove takes fifteen for each.

-- Whether only its own keys and its set refer to a finished job; nil: there is no such job. A job that is retried, has
-- a parent, an id for deduplication or a scheduler is left to BullMQ's own remove.
local function bullIsPlain(id)
  local made, finished, parent, deduplicated, repeated = unpack(redis.call("HMGET", bullKey(id), "timestamp", "finishedOn",
    "parentKey", "deid", "rjk"))
  if not made then return nil end
  return finished and not (parent or deduplicated or repeated) and true or false
end

-- Adds the keys that BullMQ deletes with a job.
local function bullAddKeys(keys, id)
  local key = bullKey(id)
  for _, suffix in ipairs({ "", ":logs", ":dependencies", ":processed", ":failed", ":unsuccessful" }) do
    keys[#keys + 1] = key .. suffix
  end
end

-- Removes plain jobs from their sets.
local function bullForgetDone(ids)
  for _, set in ipairs({ "completed", "failed" }) do redis.call("ZREM", bullKey(set), unpack(ids)) end
end
