-- The runs that an overlap policy reckons with: those that are not final, and the newest final ones, because a job that
-- is retried from outside lives again before anyone tells us.
local OPEN_AT_MOST = 200
local FINAL_AT_MOST = 5

-- `named`: the task's `open` (lib/open.lua).
--
-- The run of this task whose job is unfinished ("" none), and "1" where it is open here ("0": revived outside). If there is
-- none, also: the runs that are over and could come back.
local function reckon(named, openKey, historyKey, failuresKey, jobPrefix)
  local over = {}
  local open = openIds(named, openKey, OPEN_AT_MOST)
  if #open > OPEN_AT_MOST then return open[1], "1", {} end
  for _, id in ipairs(open) do
    if jobState(jobPrefix .. id) == "live" then return id, "1", {} end
    over[#over + 1] = id
  end
  for _, key in ipairs({ historyKey, failuresKey }) do
    for _, id in ipairs(redis.call("ZREVRANGE", key, 0, FINAL_AT_MOST - 1)) do
      local state = jobState(jobPrefix .. id)
      if state == "live" then return id, "0", {} end
      if state == "done" then over[#over + 1] = id end
    end
  end
  return "", "0", over
end

-- Did anything come to life since: a run that the decision never saw, or a job that it took for over? `reckoned` are run
-- ids by their place; their jobs' keys follow `firstJob` in that order.
local function revived(named, openKey, reckoned, firstJob)
  for _, at in pairs(reckoned) do
    if jobState(KEYS[firstJob + at]) == "live" then return true end
  end
  for _, id in ipairs(openIds(named, openKey)) do
    if not reckoned[id] then return true end
  end
  return false
end
