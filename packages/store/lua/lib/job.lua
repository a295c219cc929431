-- The truth about a run is its BullMQ job, whoever works it: BullMQ sets finishedOn when a job completes or fails
-- for good, and removes it when the job is retried.

-- Returns "missing", "done" or "live".
local function jobState(jobKey)
  local fields = redis.call("HMGET", jobKey, "timestamp", "finishedOn")
  if not fields[1] then return "missing" end
  if fields[2] then return "done" end
  return "live"
end

-- How much BullMQ has noted of a job's failures, in bytes: grows with each of them, and nothing takes it back.
local function traceOf(jobKey) return #(redis.call("HGET", jobKey, "stacktrace") or "") end

-- How soon, and how often, the reconciler looks at a run that its task waits for (ms).
local WAITED_FOR = 1000
