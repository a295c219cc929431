-- The runs that a deleted task left are nobody's: a sorted set of them each (`gone`) is cleared in bounded steps, by whoever
-- deletes, or by a node where that one is gone.

-- BullMQ goes through the list of jobs that wait for one that it removes, from its old end (bullmq.ts). What is not near that may take as
-- long as the list: no more than so many ids are passed in one script, but for one removal that alone passes more.
local NEAR = 1000
local PASSED_AT_MOST = 300000
local passed, full = 0, false

-- Whether a job that is live can be removed within this script; what that passes counts from here on. The first one always can; after
-- one that cannot, none can.
local function fits(bullPrefix, id)
  if full then return false end
  for _, set in ipairs({ "prioritized", "delayed" }) do
    if redis.call("ZSCORE", bullPrefix .. set, id) then return true end
  end
  local wait = bullPrefix .. "wait"
  local waiting = redis.call("LLEN", wait)
  local at = redis.call("LPOS", wait, id, "RANK", -1, "MAXLEN", NEAR)
  -- This look, and then BullMQ's.
  local passes = at and 2 * (waiting - at) or math.min(NEAR, waiting) + waiting
  full = passed > 0 and passed + passes > PASSED_AT_MOST
  if not full then passed = passed + passes end
  return not full
end

-- Takes records and jobs of the set's first runs. A job that a worker holds is left to the reconciler: it has a place among
-- `runs`, as the set itself has by its name (`mark`) until it is empty. Returns how many runs it took.
local function clearRuns(mark, gone, runs, journal, repeatKey, ours, bullPrefix, most, again)
  local ids = redis.pcall("ZRANGE", gone, 0, most - 1)
  if ids.err then
    -- Someone else has written there.
    redis.call("DEL", gone)
    ids = {}
  end
  local taken = 0
  for _, id in ipairs(ids) do
    local readable, state = pcall(jobState, bullPrefix .. id)
    -- What others have written there is no job.
    if not readable then state = "missing" end
    if state == "live" and not fits(bullPrefix, id) then break end
    taken = taken + 1
    redis.call("DEL", ours .. "r:" .. id, ours .. "out:" .. id)
    redis.call("ZREM", journal, id)
    redis.call("ZREM", gone, id)
    if state == "missing" or bullRemoveJob({ bullPrefix .. id, repeatKey }, { id, "0", bullPrefix }) == 1 then
      redis.call("ZREM", runs, id)
    else
      redis.call("ZADD", runs, again, id)
    end
  end
  if redis.call("EXISTS", gone) == 0 then redis.call("ZREM", runs, mark) end
  return taken
end
