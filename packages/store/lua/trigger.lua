-- A manual trigger: an occurrence of its own, now. Leaves due and cursor alone; works while paused or finished.
-- With definition fields (ARGV 11 on) it also creates the one-off task that it runs: "enqueue now".
--
-- KEYS: 1 task, 2 open, 3 ledger, 4 run, 5 job, 6 next, 7 runs, 8-18 BullMQ's keys, 19 tasks
--       then the jobs of the runs that the decision reckoned with
-- ARGV: 1 run id, 2 generation read ("" create), 3 guarded ("1" | "0"), 4 who, 5 first look of the reconciler after (ms),
--       6 prioritized, 7 packed arguments, 8 data up to the enqueue time, 9 packed options, 10 the run's details,
--       11 local name, 12 number of reckoned runs, then their ids, then (creating) field and value pairs
-- Returns: { "OK" | "DONE" | "STALE" | "OVERLAP" | "MISSING" | "ERROR <text>", now }
local now = nowMs()
if redis.call("EXISTS", KEYS[4]) == 1 then return { "DONE", now } end
local gen = redis.call("HGET", KEYS[1], "gen")
if ARGV[2] == "" then
  if gen then return { "STALE", now } end
elseif not gen then
  return { "MISSING", now }
elseif gen ~= ARGV[2] then
  return { "STALE", now }
end

local reckoned, n = {}, tonumber(ARGV[12])
for i = 1, n do reckoned[ARGV[12 + i]] = i end
if ARGV[3] == "1" and revived(KEYS[2], reckoned, 19) then return { "OVERLAP", now } end

local bull = {}
for i = 1, 11 do bull[i] = KEYS[7 + i] end
local failure = enqueue(bull, ARGV[6], ARGV[7], ARGV[8] .. now .. "}}", ARGV[9], KEYS[5])
if failure then return { "ERROR " .. failure, now } end
if gen then
  redis.call("HINCRBY", KEYS[1], "gen", 1)
else
  redis.call("HSET", KEYS[1], "gen", nowMicros(), "state", "finished", "created", now, "updated", now,
    unpack(ARGV, 13 + n, #ARGV))
  redis.call("ZADD", KEYS[19], 0, ARGV[11])
end
openRun(KEYS[4], KEYS[2], KEYS[7], ARGV[1], ARGV[11], now, ARGV[4], ARGV[10], now + tonumber(ARGV[5]))
rearm(KEYS[6], "r", KEYS[7])
return { "OK", now }
