-- The runs that an overlap policy reckons with: those that are not final, and the newest final ones, because a job that
-- is retried from outside lives again before anyone reports it. BullMQ lists the jobs that have ended, and a retry removes them from
-- that list: one check of that list is enough for most.
local OPEN_AT_MOST = 200
-- Rank of the last of these newest final runs, as text: Redis converts a number at several times the cost.
local NEWEST = "4"
-- By the list of BullMQ that has their jobs.
local FINAL = { completed = F.keys.history, failed = F.keys.failures }

-- Ids of tasks with a live job, of any owner; nil: so many jobs are live that each task is looked at. A call of many tasks reads it once.
local LOOKED_AT_EACH = 20
local LISTS, SETS = { "wait", "active", "paused" }, { "prioritized", "delayed", "waiting-children" }
local function withLiveJob(tasks)
  local keys, jobs, found = {}, 0, {}
  for _, names in ipairs({ LISTS, SETS }) do
    for _, name in ipairs(names) do keys[#keys + 1] = bullKey(name) end
  end
  if redis.call("EXISTS", unpack(keys)) == 0 then return found end
  for i, key in ipairs(keys) do jobs = jobs + redis.call(i <= #LISTS and "LLEN" or "ZCARD", key) end
  if jobs > LOOKED_AT_EACH * tasks then return nil end
  for i, key in ipairs(keys) do
    for _, id in ipairs(redis.call(i <= #LISTS and "LRANGE" or "ZRANGE", key, "0", "-1")) do
      found[string.match(id, "^[^@]*")] = true
    end
  end
  return found
end

-- A final run of the task that lives again; nil: none of the newest. `tasks`: number of those that this call asks about
local live
local function revivedOf(name, tasks)
  if live == nil then
    -- Foreign data in place of a list must not keep a task from its claim.
    local ok, found = pcall(withLiveJob, tasks)
    live = ok and found or false
  end
  if live and not live[string.match(name, "[^/]*$")] then return nil end
  for set, prefix in pairs(FINAL) do
    local ids = redis.call("ZREVRANGE", ours(prefix, name), "0", NEWEST)
    local at = #ids > 0 and jobsEnded(set, ids)
    for i, id in ipairs(ids) do
      if not at[i] and jobState(bullKey(id)) == "live" then return id end
    end
  end
end

-- `named`: the task's `open` (lib/open.lua). `final`: whether final runs count: a commit asks for them in any case, so a first read need not.
-- `tasks`: number of those that this call asks about.
--
-- Returns the run of this task whose job is unfinished ("" none), and "1" if it is open here ("0": revived outside). If there is
-- none, also: the open runs whose jobs are over.
local function reckon(name, named, openKey, final, tasks)
  local over = {}
  local open = openIds(named, openKey, OPEN_AT_MOST)
  if #open > OPEN_AT_MOST then return open[1], "1", {} end
  -- With plain workers, ended runs of a task count as open until the reconciler's next check.
  local ended = #open > 1 and jobsEnded("completed", open)
  for i, id in ipairs(open) do
    if not (ended and ended[i]) and jobState(bullKey(id)) == "live" then return id, "1", {} end
    over[#over + 1] = id
  end
  local back = final and revivedOf(name, tasks)
  return back or "", "0", back and {} or over
end

-- `begun:enqueued` of a run: the times at which a worker began it and at which it was enqueued; empty if unknown. For a plain worker only
-- the job knows the first.
local function begunAt(id)
  local started, of = unpack(redis.call("HMGET", ours(F.keys.run, id), "started", "of"))
  return (started or redis.call("HGET", bullKey(id), "processedOn") or "") .. ":" .. (string.match(of or "", "^%S+ (%d+)") or "")
end

-- Whether a run is live that the decision did not see: one that was enqueued since, one whose job it took for over, or a final one.
-- `reckoned`: the ids of the open runs that it saw; `tasks`: number of those that this call asks about.
local function revived(name, named, openKey, reckoned, tasks)
  -- It never had a run.
  if not named then return false end
  local seen = {}
  local at = #reckoned > 0 and jobsEnded("completed", reckoned)
  for i, id in ipairs(reckoned) do
    seen[id] = true
    if not at[i] and jobState(bullKey(id)) == "live" then return true end
  end
  -- More open runs than were reckoned with: at least one is new.
  for _, id in ipairs(openIds(named, openKey, #reckoned)) do
    if not seen[id] then return true end
  end
  return revivedOf(name, tasks) ~= nil
end
