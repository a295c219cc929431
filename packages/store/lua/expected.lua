-- Tells of scheduled tasks of which no run succeeded within the time that was promised. Once each, until one succeeds again.
--
-- KEYS: 1 expected, 2 next, 3 alerts
-- ARGV: 1 at most, 2 prefix of task keys
-- Returns: the number of deadlines looked at
local now = nowMs()
local names = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "WITHSCORES", "LIMIT", 0, ARGV[1])
for i = 1, #names, 2 do
  redis.call("ZREM", KEYS[1], names[i])
  -- Of one that is paused or finished nothing is expected.
  if redis.pcall("HGET", ARGV[2] .. names[i], "state") == "scheduled" then
    redis.call("RPUSH", KEYS[3], cjson.encode({ kind = "missed-deadline", task = names[i], at = tonumber(names[i + 1]) }))
    redis.call("ZADD", KEYS[2], now, "a")
  end
end
rearm(KEYS[2], "e", KEYS[1])
return #names / 2
