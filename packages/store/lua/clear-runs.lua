-- Clears the runs of a deleted task, some at a time: the records, and the jobs that no worker holds. A job that is
-- being worked keeps its place among the runs, so that the reconciler removes it later.
--
-- KEYS: 1 open, history or failures of the task, 2 runs, 3 next, 4 repeat (BullMQ's), 5 journal
-- ARGV: 1 prefix of run keys, 2 BullMQ's key prefix, 3 clear what is not younger than (ms), 4 at most, 5 look again after (ms),
--       6 prefix of output keys
-- Returns: the number of runs taken; 0: none is left
local now = nowMs()
local ids = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", ARGV[3], "LIMIT", 0, ARGV[4])
for _, id in ipairs(ids) do
  redis.call("DEL", ARGV[1] .. id, ARGV[6] .. id)
  redis.call("ZREM", KEYS[5], id)
  redis.call("ZREM", KEYS[1], id)
  if jobState(ARGV[2] .. id) == "missing" or bullRemoveJob({ ARGV[2] .. id, KEYS[4] }, { id, "0", ARGV[2] }) == 1 then
    redis.call("ZREM", KEYS[2], id)
  else
    redis.call("ZADD", KEYS[2], now + tonumber(ARGV[5]), id)
  end
end
rearm(KEYS[3], "r", KEYS[2])
return #ids
