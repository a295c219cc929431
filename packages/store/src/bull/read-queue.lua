-- Reads the number of waiting jobs of a queue, and whether workers may take them.
--
-- Returns: { paused ("" or what is stored), what our pause has stored ("" none), jobs that wait, active jobs, age in ms of the one that
--          has waited longest ("" none), 1 if a limit of BullMQ's holds them back }
local paused, about, concurrency = unpack(redis.call("HMGET", K.meta, "paused", F.queuePause, "concurrency"))
local waiting = redis.call("LLEN", K.wait) + redis.call("LLEN", K.paused) + redis.call("ZCARD", K.prioritized)
-- A node asks each queue once a minute, and most are empty.
local oldest = waiting > 0 and bullOldestSince(K)
local age = oldest and string.format("%.0f", math.max(0, nowMs() - oldest))
local active = redis.call("LLEN", K.active)
-- BullMQ keeps the count of a rate only until its period ends.
local limited = waiting > 0
  and (active >= (tonumber(concurrency) or math.huge) or redis.call("EXISTS", K.limiter) == 1)
return { paused or "", about or "", waiting, active, age or "", limited and 1 or 0 }
