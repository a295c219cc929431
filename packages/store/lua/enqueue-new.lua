-- Creates the one-off task of "enqueue now" and its job in one step.
--
-- KEYS: 1 task, 2 open, 3 run, 4 job, 5 next, 6 runs, 7 tasks, 8 priorities, 9-19 BullMQ's keys
-- ARGV: 1 local name, 2 run id, 3 who, 4 first look of the reconciler after (ms), 5 the job's template as JSON, in
--       a list, 6 data up to the enqueue time, 7 the run's details, then the definition's fields and values
-- Returns: { "OK" | "DONE" | "TAKEN" | "ERROR <text>", now }
local now = nowMs()
if redis.call("EXISTS", KEYS[3]) == 1 then return { "DONE", now } end
if redis.call("EXISTS", KEYS[1]) == 1 then return { "TAKEN", now } end

checkOpen(nil, KEYS[2], ARGV[2])
bullQueue({ unpack(KEYS, 9, 19) })
local failure = enqueue(cjson.decode(ARGV[5])[1], ARGV[2], ARGV[6] .. now .. "}}", KEYS[4])
if failure then return { "ERROR " .. failure, now } end
bullFinish()
redis.call("HSET", KEYS[1], "gen", nowMicros(), "state", "finished", "created", now,
  "open", addOpen(nil, KEYS[2], ARGV[2], now), unpack(ARGV, 8, #ARGV))
redis.call("ZADD", KEYS[7], 0, ARGV[1])
setPriority(KEYS[8], ARGV[1], redis.call("HGET", KEYS[1], "priority"))
recordRun(KEYS[3], table.concat({ ARGV[1], now, ARGV[3] }, " "), ARGV[7])
redis.call("ZADD", KEYS[6], now + tonumber(ARGV[4]), ARGV[2])
rearm(KEYS[5], "r", KEYS[6])
return { "OK", now }
