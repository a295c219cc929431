-- Completes jobs with the same result as BullMQ's moveToFinished. Only plain jobs: the worker leaves one with a parent or a deduplication id
-- to BullMQ, and this script one with children. What goes to the same key for all jobs is written once, by `bullEnded`. A.clock: the worker's time (ms).

local BULL_EVENTS = bullKey("events")
local bullLocks, bullIds, bullScores = {}, {}, {}

-- Call it before the first write. Fails if a key that all jobs share holds foreign data.
local function bullBegin()
  listed.completed = redis.call("ZCARD", bullKey("completed"))
  redis.call("SCARD", bullKey("stalled"))
  local meta = bullKey("meta")
  local most = redis.call("HGET", meta, "opts.maxLenEvents")
  if not most then
    most = "10000"
    redis.call("HSET", meta, "opts.maxLenEvents", most)
  end
  redis.call("XTRIM", BULL_EVENTS, "MAXLEN", "~", most)
end

-- `made`: attempts that BullMQ counts as made, with this one; nobody but the holder of the lock changes it.
-- Returns whether the job has ended; if not, nothing of it was written.
local function bullEnd(id, token, value, made)
  local key = bullKey(id)
  local lock = key .. ":lock"
  if redis.call("GET", lock) ~= token then return false end
  -- It exists (a key counts as often as it is named), and has no children.
  if redis.call("EXISTS", key, key, key, key .. ":dependencies", key .. ":unsuccessful") ~= 3 then return false end
  if #bullIds == 0 then bullBegin() end
  if redis.call("LREM", bullKey("active"), "-1", id) == 0 then return false end
  redis.call("HSET", key, "atm", made, "returnvalue", value, "finishedOn", A.clock)
  redis.call("XADD", BULL_EVENTS, "*", "event", "completed", "jobId", id, "returnvalue", value, "prev", "active")
  bullLocks[#bullLocks + 1] = lock
  bullIds[#bullIds + 1] = id
  add(bullScores, A.clock, id)
  return true
end

-- Call it after the last end.
local function bullEnded()
  if #bullIds == 0 then return end
  listed.completed = listed.completed + redis.call("ZADD", bullKey("completed"), unpack(bullScores))
  redis.call("SREM", bullKey("stalled"), unpack(bullIds))
  redis.call("DEL", unpack(bullLocks))
end

-- Call it after the takes. Adds the event that BullMQ adds if no job is left.
local function bullDrained(took)
  if #bullIds == 0 or took then return end
  if redis.call("EXISTS", bullKey("wait"), bullKey("active"), bullKey("prioritized")) > 0 then return end
  redis.call("XADD", BULL_EVENTS, "*", "event", "drained")
end
