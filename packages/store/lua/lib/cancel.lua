-- A task may have a hundred thousand open runs: so many are cancelled in one script.
local CANCEL_AT_ONCE = 500

-- Asks for the end of a run: its worker hears of it, or finds it when it starts (and need not hear before); the reconciler takes the job away
-- where no worker has it. Returns whether this changed anything.
local function cancelRun(runKey, runsKey, id, now, by, channel, queue)
  local state = redis.call("HGET", runKey, "state")
  if not state or state == "final" then return false end
  if redis.call("HSETNX", runKey, "cancel", now .. " " .. by) == 0 then return false end
  if state == "running" then redis.call("HSET", runKey, "state", "terminating") end
  redis.call("ZADD", runsKey, now, id)
  if state ~= "queued" then redis.call("PUBLISH", channel, queue .. " " .. id) end
  return true
end
