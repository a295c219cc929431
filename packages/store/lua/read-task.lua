-- Reads one task with the time and the runs that a manual trigger must reckon with. Reads only.
--
-- KEYS: 1 task, 2 open
-- ARGV: 1 prefix of job keys
-- Returns: { now, { field, value, … }, running ("1" | "0"), { id of a run that is over, … } }
local over, running = {}, "0"
for i, id in ipairs(redis.call("ZRANGE", KEYS[2], 0, 200)) do
  if i > 200 or jobState(ARGV[1] .. id) == "live" then
    running, over = "1", {}
    break
  end
  over[i] = id
end
return { nowMs(), redis.call("HGETALL", KEYS[1]), running, over }
