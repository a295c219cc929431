-- Reads a bounded batch of due tasks, and of each the runs that its overlap policy must reckon with. Reads only.
-- Task, run and job keys are made here (what is due is known only here); all of them are in the queue's slot.
--
-- K.dues: due indexes of one shard or several; K.frozen: the freezes
-- A.limit: batch size; A.by: due by ("" now; later is a read ahead); A.whole: "1": reads nothing if more is due
-- A.names: to read, for each index in turn, separated by spaces, and the indexes by `;` ("": the first due tasks, at the same instant the
-- higher priority first); A.final: "1": also final runs that live again, which a commit has found
-- Returns: { now, "1" if more is due, { revision and list of the
--            freezes and quotas, if there are any, and the owners whose quota of waiting jobs is used up }, the time since which claims
--            have left something overdue ("" they have not), then of each task in
--            one text, with F.separator between: local name, run in the way ("" none), "1" if that is open here, when a worker began it ("" none did), ids of runs that
--            are over, separated by spaces, its time in the due index, then field and value
--            of each }
local now = nowMs()
local by = math.max(now, tonumber(A.by) or 0)
-- Texts: the client reads them several times faster than nested replies, and Redis writes them faster than JSON.
local NO_RUN = string.rep(F.separator, 5)
-- Times in the due index by name.
local scores = {}
local limit = tonumber(A.limit)

-- Corrupt data counts as none.
local function priorityOf(stored)
  return stored and tonumber(string.match(stored, "^%d+$")) or 0
end

-- `flat`: names and due times.
local function namesOf(flat)
  local names = {}
  for i = 1, #flat, 2 do
    names[#names + 1] = flat[i]
    scores[flat[i]] = flat[i + 1]
  end
  return names
end

-- At the same instant: 0 goes before all, then 1, 2, … as in BullMQ.
local function byPriority(flat)
  local names, rank = namesOf(flat), {}
  local priorities = redis.pcall("HMGET", K.priorities, unpack(names))
  for i, name in ipairs(names) do rank[name] = { tonumber(flat[2 * i]), priorityOf(priorities[i]), i } end
  table.sort(names, function(x, y)
    x, y = rank[x], rank[y]
    for i = 1, 3 do
      if x[i] ~= y[i] then return x[i] < y[i] end
    end
    return false
  end)
  return names
end

local function first()
  local flat
  for _, key in ipairs(K.dues) do
    local due = redis.call("ZRANGEBYSCORE", key, "-inf", by, "WITHSCORES", "LIMIT", 0, limit + 1)
    if flat then
      for _, text in ipairs(due) do flat[#flat + 1] = text end
    else
      flat = due
    end
    if #flat > 2 * limit and A.whole == "1" then return {}, "1" end
  end
  -- With several indexes, tasks of the same instant are to be put in order even without priorities.
  local sorted = #flat <= 2 or #K.dues == 1 and redis.call("EXISTS", K.priorities) == 0
  return sorted and namesOf(flat) or byPriority(flat), #flat > 2 * limit and "1" or "0"
end

-- The requested names that are still due.
local function named()
  local all, index = {}, 0
  for text in string.gmatch(A.names, "[^;]+") do
    local names = {}
    index = index + 1
    for name in string.gmatch(text, "%S+") do names[#names + 1] = name end
    for i, at in ipairs(redis.call("ZMSCORE", K.dues[index], unpack(names))) do
      if at and tonumber(at) <= by then
        all[#all + 1] = names[i]
        scores[names[i]] = at
      end
    end
  end
  return all, "0"
end

local function read(name, tasks)
  local task = redis.call("HGETALL", ours(F.keys.task, name))
  local overlap, open, waits
  for i = 1, #task, 2 do
    local field = task[i]
    if field == "overlap" then
      overlap = task[i + 1]
    elseif field == "open" then
      open = task[i + 1]
    elseif field == "pending" then
      waits = true
    end
  end
  local said
  if not open or overlap == "allow" and not waits then
    -- If runs may overlap, or there were none yet, no run can block it. (A pending occurrence may have a policy of its own.)
    said = name .. NO_RUN .. scores[name] .. F.separator
  else
    local run, here, over = reckon(name, open, ours(F.keys.open, name), A.final == "1", tasks)
    said = table.concat({ name, run, here, run ~= "" and begunAt(run) or "", table.concat(over, " "), scores[name], "" }, F.separator)
  end
  -- Prepended to the first field, because each intermediate text costs as much as its length.
  task[1] = said .. (task[1] or "")
  return table.concat(task, F.separator)
end

local names, more = (A.names == "" and first or named)()
local out = { now, more, "" }
local rev, list, allowed = unpack(redis.call("HMGET", K.frozen, "rev", "list", "most"))
local owners = {}
for i = 1, allowed and math.min(limit, #names) or 0 do owners[string.match(names[i], "^[^/]*")] = true end
out[3] = { rev, list, fullOwners(allowed, owners) }
out[4] = behindSince(now) or ""
for i = 1, math.min(limit, #names) do
  -- Corrupt data in one task must not keep the others from being read.
  local ok, text = pcall(read, names[i], #names)
  out[4 + i] = ok and text or names[i] .. NO_RUN .. scores[names[i]] .. F.separator
end
return out
