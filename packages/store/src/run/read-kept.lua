-- The oldest records that tasks still have, the numbers of those that they ever had, and their ledgers. Reads only.
--
-- K.tasks: their hashes; A.outcomes: all outcomes of runs
-- Returns: for each task its `keep`; the number of runs that ended without a failure, of their records, the end of the oldest of these; the
--          same of failures; lines of the ledger. With F.separator between; "" for corrupt data, and for what there is none of
local function oldest(set)
  local newer = redis.call("ZCARD", set)
  return newer, newer > 0 and redis.call("ZRANGE", set, 0, 0, "WITHSCORES")[2] or ""
end

local function read(task)
  local name = string.sub(task, #OURS + #F.keys.task + 1)
  local well, failed = 0, 0
  for i, count in ipairs(redis.call("HMGET", ours(F.keys.stats, name), unpack(A.outcomes))) do
    local n = tonumber(string.match(count or "", "^%d+") or 0)
    if F.failures[A.outcomes[i]] then failed = failed + n else well = well + n end
  end
  local wellKept, firstWell = oldest(ours(F.keys.history, name))
  local failedKept, firstFailed = oldest(ours(F.keys.failures, name))
  return table.concat({
    redis.call("HGET", task, "keep") or "", well, wellKept, firstWell, failed, failedKept, firstFailed,
    unpack(redis.call("LRANGE", ours(F.keys.ledger, name), 0, -1)),
  }, F.separator)
end

local rows = {}
for i, task in ipairs(K.tasks) do rows[i] = tried(read, task) or "" end
return rows
