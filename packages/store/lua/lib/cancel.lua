-- A task may have a hundred thousand open runs: so many are cancelled in one script.
local CANCEL_AT_ONCE = 500

-- Asks for the end of a run: its worker hears of it, or finds it when it starts; the reconciler takes the job away where no worker has it.
-- Of a run that never started nobody need hear. (One that did may be queued while workers have its items.)
-- Returns whether this changed anything.
local function cancelRun(runKey, runsKey, id, now, by, channel, queue)
  local run = redis.call("HMGET", runKey, "state", "started")
  local state = run[1]
  if not state or state == "final" then return false end
  if redis.call("HSETNX", runKey, "cancel", now .. " " .. by) == 0 then return false end
  if state == "running" then redis.call("HSET", runKey, "state", "terminating") end
  redis.call("ZADD", runsKey, now, id)
  if state ~= "queued" or run[2] then redis.call("PUBLISH", channel, queue .. " " .. id) end
  return true
end
