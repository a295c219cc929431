-- Deletes the rest of a queue without tasks and runs: our counts, and BullMQ's own keys unless it has foreign jobs. BullMQ's
-- settings (meta) stay if someone has made any: a pause, a concurrency, a rate limit.
--
-- K.bull: BullMQ's keys of a queue without jobs; K.jobs: those that exist while it has jobs
-- Returns: 1; 0: tasks or runs are left, or alerts, and nothing was deleted
if QUEUE == F.alertsQueue and redis.call("EXISTS", K.alerts, K.incidents, K.collected) > 0 then return 0 end
if redis.call("EXISTS", K.tasks, K.runs) > 0 then return 0 end
local idle = redis.call("EXISTS", unpack(K.jobs)) == 0
local set = bullHasSettings(K.meta)
redis.call("DEL", K.outcomes, K.frozen, K.held, K.late, K.skips)
if idle then
  redis.call("DEL", unpack(K.bull))
  if not set then redis.call("DEL", K.meta) end
end
return 1
