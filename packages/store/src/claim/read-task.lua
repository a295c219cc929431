-- Reads one task with the time and the runs that a manual trigger must reckon with. Reads only.
--
-- K.asked: of a manual trigger
-- Returns: { now, { field, value, … }, run in the way ("" none), "1" if it is open here, when a worker began it, { id of a run that is over, … }, { revision and list of
--            the freezes and quotas, if there are any, the owner if its quota of waiting jobs is used up }, value of K.asked }
local run, open, over = reckon(A.name, redis.call("HGET", K.task, "open"), K.open, true, 1)
local rev, list, most = unpack(redis.call("HMGET", K.frozen, "rev", "list", "most"))
return {
  nowMs(), redis.call("HGETALL", K.task), run, open, run ~= "" and begunAt(run) or "", over, { rev, list, fullOwners(most, { [A.owner] = true }) },
  K.asked and redis.call("GET", K.asked) or "",
}
