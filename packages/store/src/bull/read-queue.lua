-- Reads the number of waiting jobs of a queue, and whether workers may take them.
--
-- Returns: { paused ("" or what is stored), what our pause has stored ("" none), jobs that wait, active jobs, age in ms of the one that
--          has waited longest ("" none), most jobs at a time, most jobs of a period, its ms ("" no limit), the limit that holds jobs back
--          now: runs, rate or "" }
local paused, about, runs, rate, period =
  unpack(redis.call("HMGET", K.meta, "paused", F.queuePause, "concurrency", "max", "duration"))
local waiting = redis.call("LLEN", K.wait) + redis.call("LLEN", K.paused) + redis.call("ZCARD", K.prioritized)
-- A node asks each queue once a minute, and most are empty.
local oldest = waiting > 0 and bullOldestSince(K)
local age = oldest and string.format("%d", math.max(0, nowMs() - oldest))
local active = redis.call("LLEN", K.active)
local holds = ""
if waiting > 0 then
  -- BullMQ keeps the count of a rate only until its period ends. A rate may also be an option of a worker.
  if active >= (tonumber(runs) or math.huge) then
    holds = "runs"
  elseif redis.call("EXISTS", K.limiter) == 1 then
    holds = "rate"
  end
end
return { paused or "", about or "", waiting, active, age or "", runs or "", rate or "", period or "", holds }
