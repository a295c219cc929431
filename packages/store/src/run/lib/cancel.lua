-- A task may have a hundred thousand open runs: one script cancels no more than this.
local CANCEL_AT_ONCE = 500

-- Requests the cancellation of a run: its worker receives a message, or finds it at the start; the reconciler removes a job that no worker has.
-- For a run that never started there is no message. (One that did may be queued while workers have its items.)
-- Returns whether this changed anything.
local function cancelRun(id, runKey, now, by)
  local state, started = unpack(redis.call("HMGET", runKey, "state", "started"))
  if not state or state == "final" then return false end
  if redis.call("HSETNX", runKey, "cancel", now .. " " .. by) == 0 then return false end
  if state == "running" then redis.call("HSET", runKey, "state", "terminating") end
  redis.call("ZADD", K.runs, now, id)
  if state ~= "queued" or started then publish(F.channels.cancel, QUEUE .. " " .. id) end
  return true
end
