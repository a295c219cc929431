-- Gives tasks the next time that their schedule means now: a shared calendar or the time zone data has changed. A task that
-- is otherwise than the caller read it is left, to be read again.
--
-- KEYS: 1 next, 2-9 the eight due indexes, 10 runs, 11 expected, then for each task: task, ledger
-- ARGV: 1 wake channel, 2 queue, 3 prefix of the sets of tasks by shared calendar, 4 revision of the shared calendars,
--       5 a finished task lingers for (ms) where it says nothing, 6 number of tasks, then for each: local name, shard, generation read, state, nominal ("" none), due,
--       first and last time that nobody owes ("" none; the last one is the new cursor)
-- Returns: { "OK" | "STALE" | "ERROR <text>" of each }
local channel, queue, calendarPrefix, revision = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local touched, a = {}, 6
local function arg()
  a = a + 1
  return ARGV[a]
end

local function plan(taskKey, ledgerKey)
  local name, shard, gen, state, nominal, due = arg(), tonumber(arg()), arg(), arg(), arg(), arg()
  local from, to = arg(), arg()
  if redis.call("HGET", taskKey, "gen") ~= gen then return "STALE" end
  -- First what fails where others have written: then nothing is half done.
  if from ~= "" then
    record(ledgerKey, "superseded", from, to, nowMs(), "replan", "-", redis.call("HGET", taskKey, "cursor"))
    redis.call("HSET", taskKey, "cursor", to)
  end
  touched[shard] = true
  redis.call("HINCRBY", taskKey, "gen", 1)
  local was = redis.call("HGET", taskKey, "state")
  if state == "finished" and was ~= "finished" then
    redis.call("ZADD", KEYS[10], nowMs() + (redis.call("HGET", taskKey, "linger") or ARGV[5]), name)
    rearm(KEYS[1], "r", KEYS[10])
  end
  -- Of a finished task nothing was expected.
  local expect = was == "finished" and state == "scheduled" and redis.call("HGET", taskKey, "expect")
  if expect then
    redis.call("ZADD", KEYS[11], nowMs() + expect, name)
    rearm(KEYS[1], "e", KEYS[11])
  end
  redis.call("HSET", taskKey, "state", state)
  setPlan(taskKey, KEYS[2 + shard], name, state, nominal, due, nowMs())
  local calendars = redis.call("HGET", taskKey, "calendars")
  if calendars then redis.call("HSET", taskKey, "calrev", revision) end
  for calendar in string.gmatch(calendars or "", "[^,]+") do
    redis.call("ZADD", calendarPrefix .. calendar, revision, name)
  end
  return "OK"
end

local out = {}
for n = 1, tonumber(ARGV[6]) do
  local answer, failed = tried(plan, KEYS[10 + 2 * n], KEYS[11 + 2 * n])
  out[n] = answer or "ERROR " .. failed
end

for shard in pairs(touched) do rearmAndWake(KEYS[1], shard, KEYS[2 + shard], channel, queue) end
return out
