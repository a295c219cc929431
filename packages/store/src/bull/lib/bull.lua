-- BullMQ's own records: all that our scripts read of its jobs and queues. A job is a run's, under the run's id.

local BULL = "{" .. NAMESPACE .. ":" .. QUEUE .. "}:" .. QUEUE .. ":"

local function bullKey(name) return BULL .. name end

-- State of a run's job, with any kind of worker: BullMQ sets finishedOn when a job completes or fails for good, and removes it when the
-- job is retried. Returns "missing", "done" or "live".
local function jobState(jobKey)
  local fields = redis.call("HMGET", jobKey, "timestamp", "finishedOn")
  if not fields[1] then return "missing" end
  if fields[2] then return "done" end
  return "live"
end

-- The runs among `ids` whose jobs have completed, or failed for good: for each a time, or false. A retry takes a job off these lists.
local function jobsEnded(how, ids) return redis.call("ZMSCORE", bullKey(how), unpack(ids)) end

-- Size in bytes of the stack traces that BullMQ keeps of a job's failures: it grows with each failure and never shrinks.
local function traceOf(jobKey) return #(redis.call("HGET", jobKey, "stacktrace") or "") end

-- Attempts that BullMQ counts as made; nil: none, or they were reset.
local function attemptsMade(jobKey) return redis.call("HGET", jobKey, "atm") or nil end

-- Start time and attempts of a run that no Carillon worker ended, from its job.
local function stampsOf(jobKey)
  local stamps = redis.call("HMGET", jobKey, "processedOn", "ats")
  return { started = stamps[1], attempts = stamps[2] }
end

local function isHeld(jobKey) return redis.call("EXISTS", jobKey .. ":lock") == 1 end

local function isHeldWith(jobKey, token) return redis.call("GET", jobKey .. ":lock") == token end

-- The end of a job that is done: its outcome and, unless it succeeded, its error.
local function jobOutcome(jobKey, id)
  if redis.call("ZSCORE", bullKey("completed"), id) then return "succeeded" end
  local reason = redis.call("HGET", jobKey, "failedReason") or nil
  if reason and string.find(reason, "stalled more than", 1, true) then return "crashed", reason end
  return "failed", reason
end

-- A removal searches the list of waiting jobs from its oldest end (bullmq.ts). For a job far from that end this may
-- take as long as the list. One script passes at most this many ids, except in a single removal that alone passes more.
local NEAR = 1000
local PASSED_AT_MOST = 300000
local passed, isSpent = 0, false

-- Whether this script may still remove a live job; counts the ids that its removal passes. The first job always may;
-- after a refusal none may.
local function fits(id)
  if isSpent then return false end
  for _, set in ipairs({ "prioritized", "delayed" }) do
    if redis.call("ZSCORE", bullKey(set), id) then return true end
  end
  local wait = bullKey("wait")
  local waiting = redis.call("LLEN", wait)
  local at = redis.call("LPOS", wait, id, "RANK", -1, "MAXLEN", NEAR)
  -- Counts this search and BullMQ's own.
  local passes = at and 2 * (waiting - at) or math.min(NEAR, waiting) + waiting
  isSpent = passed > 0 and passed + passes > PASSED_AT_MOST
  if not isSpent then passed = passed + passes end
  return not isSpent
end

-- Whether a live job is in none of BullMQ's lists, so that no worker would ever take it. A script searches at most this many ids of lists in vain;
-- after that all jobs count as listed. An old job is found near the end that workers take from.
local SEARCHED_AT_MOST = 20000
local searched = 0
local function bullIsUnlisted(id)
  for _, set in ipairs({ "delayed", "prioritized", "waiting-children" }) do
    if redis.call("ZSCORE", bullKey(set), id) then return false end
  end
  for _, list in ipairs({ "wait", "paused", "active" }) do
    local size = redis.call("LLEN", bullKey(list))
    if searched + size > SEARCHED_AT_MOST or redis.call("LPOS", bullKey(list), id, "RANK", -1) then return false end
    searched = searched + size
  end
  return true
end

-- Time at which the job that has waited longest was enqueued, or its last attempt began; nil: none waits. `keys`: wait, paused, prioritized.
local function bullOldestSince(keys)
  local oldest
  local function consider(id)
    local times = id and redis.pcall("HMGET", bullKey(id), "timestamp", "processedOn")
    if not times or times.err then return end
    local since = math.max(tonumber(times[1]) or 0, tonumber(times[2]) or 0)
    if since > 0 and (not oldest or since < oldest) then oldest = since end
  end
  -- Workers take from this end.
  consider(redis.call("LINDEX", keys.wait, -1))
  consider(redis.call("LINDEX", keys.paused, -1))
  -- A score is the priority times LEVEL, and a serial number: the first of each priority has waited longest. Bounded, for there may be many.
  local LEVEL, LEVELS = 0x100000000, 100
  local from = "-inf"
  for _ = 1, LEVELS do
    local first = redis.call("ZRANGEBYSCORE", keys.prioritized, from, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    if not first[1] then break end
    consider(first[1])
    from = string.format("%d", (math.floor(first[2] / LEVEL) + 1) * LEVEL)
  end
  return oldest
end

local function bullIsPaused(metaKey) return redis.call("HEXISTS", metaKey, "paused") == 1 end

-- Whether a queue has settings that a user made. A key of another type is not BullMQ's, and counts as settings.
local function bullHasSettings(metaKey)
  local fields = redis.pcall("HKEYS", metaKey)
  if fields.err then return true end
  for _, field in ipairs(fields) do
    -- BullMQ writes these two by itself.
    if field ~= "opts.maxLenEvents" and field ~= "version" then return true end
  end
  return false
end
