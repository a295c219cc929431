-- Creates the one-off task of "enqueue now" and its job in one step.
--
-- KEYS: 1 task, 2 open, 3 run, 4 job, 5 next, 6 runs, 7 tasks, 8 priorities, 9-19 BullMQ's keys, 20 runs that a deleted task of
--       that name left
-- ARGV: 1 local name, 2 run id, 3 who, 4 first look of the reconciler after (ms), 5 the job's template as JSON, in
--       a list, 6 the run's details, 7 queue, 8 owner, 9 id, 10-15 the occurrence's key, nominal and due time, trigger, more,
--       payload (jobData), then the definition's fields and values
-- Returns: { "OK" | "DONE" | "TAKEN" | "LEFT" (those are to be cleared first) | "ERROR <text>", now }
local now = nowMs()
if redis.call("EXISTS", KEYS[3]) == 1 then return { "DONE", now } end
if redis.call("EXISTS", KEYS[1]) == 1 then return { "TAKEN", now } end
if redis.call("EXISTS", KEYS[20]) == 1 then return { "LEFT", now } end

checkOpen(nil, KEYS[2], ARGV[2])
bullQueue({ unpack(KEYS, 9, 19) })
-- The first run belongs to the generation that the task begins with.
local generation, enqueued = nowMicros(), string.format("%.0f", now)
local data = jobData(ARGV[15], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12], generation, ARGV[13], ARGV[2], ARGV[14],
  enqueued)
local failure = enqueue(cjson.decode(ARGV[5])[1], ARGV[2], data, KEYS[4])
if failure then return { "ERROR " .. failure, now } end
bullFinish()
redis.call("HSET", KEYS[1], "gen", generation, "state", "finished", "created", now,
  "open", addOpen(nil, KEYS[2], ARGV[2], now), unpack(ARGV, 16, #ARGV))
redis.call("ZADD", KEYS[7], 0, ARGV[1])
setPriority(KEYS[8], ARGV[1], redis.call("HGET", KEYS[1], "priority"))
recordRun(KEYS[3], ARGV[1], enqueued, ARGV[3], ARGV[6])
redis.call("ZADD", KEYS[6], now + tonumber(ARGV[4]), ARGV[2])
rearm(KEYS[5], "r", KEYS[6])
return { "OK", now }
