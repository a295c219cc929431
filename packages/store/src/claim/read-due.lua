-- Reads a bounded batch of due tasks, and of each the runs that its overlap policy must reckon with. Reads only.
-- Task, run and job keys are made here (what is due is known only here); all of them are in the queue's slot.
--
-- If more is due than fits, half of it is the oldest and half the newest of a bounded window, dealt out to owners in turn (the
-- owner is the name's beginning), at the same instant the higher priority first. The window is larger than a batch: what of it
-- did not fit is named, and the next reads ask for it by name.
--
-- For several shards it reads all that is due, in the order of due times, or nothing if that does not fit.
--
-- K.frozen: the freezes; K.others: due indexes of other shards, for several
-- A.pass: due tasks to pass over, in order ("" a fair choice); A.limit: batch size; A.names: to read, separated by spaces ("" choose);
-- A.by: due by ("" now; later is a look ahead); A.window: how many of the oldest and of the newest to choose from
-- Returns: { now, "1" if more is due than is read and named, names that did not fit, separated by spaces, { revision and list of the
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
local limit, window = tonumber(A.limit), tonumber(A.window)

-- Deals out names to owners in turn, each owner's in their order.
local function deal(names)
  local owners, queues = {}, {}
  for _, name in ipairs(names) do
    local owner = string.sub(name, 1, string.find(name, "/", 1, true) or -1)
    local queue = queues[owner]
    if not queue then
      queue = {}
      queues[owner] = queue
      owners[#owners + 1] = queue
    end
    queue[#queue + 1] = name
  end
  local dealt, round = {}, 1
  while #dealt < #names do
    for _, queue in ipairs(owners) do dealt[#dealt + 1] = queue[round] end
    round = round + 1
  end
  return dealt
end

-- Corrupt data counts as none.
local function priorityOf(stored)
  return stored and tonumber(string.match(stored, "^%d+$")) or 0
end

local prioritized = redis.call("EXISTS", K.priorities) == 1

-- `flat`: names and due times.
local function namesOf(flat)
  local names = {}
  for i = 1, #flat, 2 do
    names[#names + 1] = flat[i]
    scores[flat[i]] = flat[i + 1]
  end
  return names
end

-- At the same instant: 0 goes before all, then 1, 2, … as in BullMQ. `order`: 1 the oldest first, -1 the newest.
local function byPriority(flat, order)
  local names, rank = namesOf(flat), {}
  local priorities = redis.pcall("HMGET", K.priorities, unpack(names))
  for i, name in ipairs(names) do rank[name] = { order * tonumber(flat[2 * i]), priorityOf(priorities[i]), i } end
  table.sort(names, function(x, y)
    x, y = rank[x], rank[y]
    for i = 1, 3 do
      if x[i] ~= y[i] then return x[i] < y[i] end
    end
    return false
  end)
  return names
end

local function range(command, from, to, offset, count)
  local flat = redis.call(command, K.due, from, to, "WITHSCORES", "LIMIT", offset, count)
  if not prioritized or #flat == 0 then return namesOf(flat) end
  return byPriority(flat, command == "ZREVRANGEBYSCORE" and -1 or 1)
end

-- Takes from both in turn, each name once.
local function merge(oldest, newest)
  local merged, seen = {}, {}
  local function take(name)
    if name and not seen[name] then
      seen[name] = true
      merged[#merged + 1] = name
    end
  end
  for i = 1, math.max(#oldest, #newest) do
    take(oldest[i])
    take(newest[i])
  end
  return merged
end

local function choose()
  local passed = tonumber(A.pass)
  local oldest = range("ZRANGEBYSCORE", "-inf", by, passed or 0, limit + 1)
  if #oldest <= limit then return oldest, "0" end
  if passed then return { unpack(oldest, 1, limit) }, "1" end
  oldest = range("ZRANGEBYSCORE", "-inf", by, 0, window)
  -- A look ahead that reads everything needs no fair choice: all of it is ready in time.
  if by > now and #oldest < window then return deal(oldest), "0" end
  local newest = range("ZREVRANGEBYSCORE", by, "-inf", 0, window)
  return merge(deal(oldest), deal(newest)), #oldest == window and "1" or "0"
end

local function together()
  local flat = {}
  for _, key in ipairs({ K.due, unpack(K.others) }) do
    local due = redis.call("ZRANGEBYSCORE", key, "-inf", by, "WITHSCORES", "LIMIT", 0, limit + 1)
    for _, text in ipairs(due) do flat[#flat + 1] = text end
    if #flat > 2 * limit then return {}, "1" end
  end
  return #flat > 0 and byPriority(flat, 1) or flat, "0"
end

-- The requested names that are still due.
local function named()
  local names, due = {}, {}
  for name in string.gmatch(A.names, "%S+") do names[#names + 1] = name end
  for i, at in ipairs(redis.call("ZMSCORE", K.due, unpack(names))) do
    if at and tonumber(at) <= by then
      due[#due + 1] = names[i]
      scores[names[i]] = at
    end
  end
  return due, "0"
end

local function read(name)
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
    local run, here, over = reckon(open, ours(F.keys.open, name), ours(F.keys.history, name), ours(F.keys.failures, name))
    said = table.concat({ name, run, here, run ~= "" and begunAt(run) or "", table.concat(over, " "), scores[name], "" }, F.separator)
  end
  -- Prepended to the first field, because each intermediate text costs as much as its length.
  task[1] = said .. (task[1] or "")
  return table.concat(task, F.separator)
end

local names, more
if #K.others > 0 then
  names, more = together()
elseif A.names == "" then
  names, more = choose()
else
  names, more = named()
end
local out = { now, more, table.concat(names, " ", math.min(limit, #names) + 1), "" }
local rev, list, allowed = unpack(redis.call("HMGET", K.frozen, "rev", "list", "most"))
local owners = {}
for i = 1, allowed and math.min(limit, #names) or 0 do owners[string.match(names[i], "^[^/]*")] = true end
out[4] = { rev, list, fullOwners(allowed, owners) }
out[5] = behindSince(now) or ""
for i = 1, math.min(limit, #names) do
  -- Corrupt data in one task must not keep the others from being read.
  local ok, text = pcall(read, names[i])
  out[5 + i] = ok and text or names[i] .. NO_RUN .. scores[names[i]] .. F.separator
end
return out
