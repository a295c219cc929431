-- Most runs that the reconciler checks have ended, and so have their jobs. Those are handled together, with two reads
-- for each and a few writes for all. Others are left to the check of each run.

-- Returns the work that a run needs; nil: it needs a check of its own. `job`: it has one; if it has a record: `name` of its task, the `set` that
-- lists it, `over`, until when it is kept, and whether the task `lingers`. `tasks`: those that were read already.
local function readOver(id, tasks)
  local state, of, outcome, finished, v = unpack(redis.call("HMGET", ours(F.keys.run, id), "state", "of", "outcome", "finished", "v"))
  if state and (state ~= "final" or not finished) or isNewerRun(v) then return nil end
  local plain = bullIsPlain(id)
  if plain == false or not (plain or state) then return nil end
  if not state then return { job = true } end
  local name = string.match(of or "", "^%S+")
  local task = tasks[name]
  if not task then
    local gen, keep, once, is, open = unpack(redis.call("HMGET", ours(F.keys.task, name), "gen", "keep", "once", "state", "open"))
    local _, _, successesFor, failuresFor = keepOf(keep)
    local lingers = once and is == "finished" and (open or "") == ""
    task = { exists = gen, lingers = lingers, successesFor = successesFor, failuresFor = failuresFor }
    tasks[name] = task
  end
  if not task.exists then return nil end
  local set, age = ours(F.keys.history, name), task.successesFor
  if F.failures[outcome] then set, age = ours(F.keys.failures, name), task.failuresFor end
  return { job = plain, name = name, set = set, over = tonumber(finished) + age, lingers = task.lingers }
end

-- Removes the jobs of runs that are over, and records that have been kept for long enough. Returns the runs by their id.
local function sweep(ids, now)
  local swept, all, tasks = {}, {}, {}
  for _, id in ipairs(ids) do
    local run = string.find(id, "@", 1, true) and tried(readOver, id, tasks)
    if run then
      swept[id] = run
      all[#all + 1] = id
    end
  end
  if #all == 0 then return swept end
  local kept, keys, jobs, without, expired = {}, {}, {}, {}, {}
  for _, id in ipairs(all) do
    local run = swept[id]
    if run.job then
      bullAddKeys(keys, id)
      jobs[#jobs + 1] = id
    end
    if run.over and run.over > now then
      add(kept, whole(run.over + 1), id)
    else
      without[#without + 1] = id
      if run.set then
        expired[run.set] = expired[run.set] or {}
        table.insert(expired[run.set], id)
      end
    end
  end
  -- Moves these first: it is the only write that a full Redis refuses.
  if #kept > 0 then redis.call("ZADD", K.runs, unpack(kept)) end
  if #without > 0 then redis.call("ZREM", K.runs, unpack(without)) end
  if #jobs > 0 then
    redis.call("UNLINK", unpack(keys))
    bullForgetDone(jobs)
  end
  for set, some in pairs(expired) do forget(set, some) end
  return swept
end
