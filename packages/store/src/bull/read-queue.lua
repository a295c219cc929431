-- Reads the number of waiting jobs of a queue, and whether workers may take them.
--
-- Returns: { paused ("" or what is stored), what our pause has stored ("" none), jobs that wait, active jobs, age in ms of the one that
--          has waited longest ("" none) }
local paused, about = unpack(redis.call("HMGET", K.meta, "paused", F.queuePause))
local waiting = redis.call("LLEN", K.wait) + redis.call("LLEN", K.paused) + redis.call("ZCARD", K.prioritized)
-- A node asks each queue once a minute, and most are empty.
local oldest = waiting > 0 and bullOldestSince(K)
local age = oldest and string.format("%.0f", math.max(0, nowMs() - oldest))
return { paused or "", about or "", waiting, redis.call("LLEN", K.active), age or "" }
