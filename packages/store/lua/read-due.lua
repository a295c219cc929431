-- Reads a bounded batch of due tasks, and of each the runs that its overlap policy must reckon with. Reads only.
-- Task, run and job keys are made here from the queue's own prefixes (what is due is known only here); all of them
-- are in the slot of KEYS[1].
--
-- Where more is due than fits, half of it is the oldest and half the newest of a bounded window, dealt round among owners (the
-- owner is the name's beginning), at the same instant the higher priority first.
--
-- KEYS: 1 due index of the shard
-- ARGV: 1 prefix of task keys, 2 prefix of the sets of open runs, 3 prefix of histories, 4 prefix of failures,
--       5 prefix of job keys, 6 due tasks to pass over, in order ("" a fair choice), 7 batch size
-- Returns: { now, "1" where more is due, { local name, due, { field, value, … }, run in the way ("" none),
--            "1" where it is open here, { id of a run that is over, … } }, … }
local now = nowMs()
local limit = tonumber(ARGV[7])
local WINDOW = 4

-- Deals `entries` ({ name, due }) round among owners, each owner's in their order.
local function deal(entries)
  local owners, queues = {}, {}
  for _, entry in ipairs(entries) do
    local owner = string.match(entry[1], "^[^/]+")
    if not queues[owner] then
      queues[owner] = {}
      owners[#owners + 1] = owner
    end
    table.insert(queues[owner], entry)
  end
  local dealt, round = {}, 1
  while #dealt < #entries do
    for _, owner in ipairs(owners) do dealt[#dealt + 1] = queues[owner][round] end
    round = round + 1
  end
  return dealt
end

local function pairsOf(flat)
  local entries = {}
  for i = 1, #flat, 2 do entries[#entries + 1] = { flat[i], flat[i + 1] } end
  return entries
end

-- Whatever someone else has written there.
local function priorityOf(name)
  local stored = redis.pcall("HGET", ARGV[1] .. name, "priority")
  return type(stored) == "string" and tonumber(string.match(stored, "^%d+$")) or 0
end

-- At the same instant: 0 goes before all, then 1, 2, … as in BullMQ.
local function byPriority(entries)
  local rank = {}
  for i, entry in ipairs(entries) do
    rank[entry[1]] = { tonumber(entry[2]), priorityOf(entry[1]), i }
  end
  table.sort(entries, function(x, y)
    x, y = rank[x[1]], rank[y[1]]
    for i = 1, 3 do
      if x[i] ~= y[i] then return x[i] < y[i] end
    end
    return false
  end)
  return entries
end

local function select()
  local pass = ARGV[6] == "" and 0 or ARGV[6]
  local oldest = pairsOf(redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "WITHSCORES", "LIMIT", pass, limit + 1))
  if #oldest <= limit then return byPriority(oldest), "0" end
  if ARGV[6] ~= "" then return { unpack(oldest, 1, limit) }, "1" end
  oldest = pairsOf(redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "WITHSCORES", "LIMIT", 0, WINDOW * limit))
  local newest = pairsOf(redis.call("ZREVRANGEBYSCORE", KEYS[1], now, "-inf", "WITHSCORES", "LIMIT", 0, WINDOW * limit))
  local half, taken, seen = math.ceil(limit / 2), {}, {}
  for _, side in ipairs({ deal(byPriority(oldest)), deal(byPriority(newest)) }) do
    local left = half
    for _, entry in ipairs(side) do
      if left == 0 or #taken == limit then break end
      if not seen[entry[1]] then
        seen[entry[1]] = true
        taken[#taken + 1] = entry
        left = left - 1
      end
    end
  end
  return taken, "1"
end

-- Where runs may overlap there is nothing to reckon with.
local function mayOverlap(task)
  for i = 1, #task, 2 do
    if task[i] == "overlap" then return task[i + 1] == "allow" end
  end
  return false
end

local due, more = select()
local out = { now, more }
for _, entry in ipairs(due) do
  local name = entry[1]
  local task = redis.pcall("HGETALL", ARGV[1] .. name)
  if task.err then task = {} end
  local run, open, over = "", "0", {}
  if not mayOverlap(task) then run, open, over = reckon(ARGV[2] .. name, ARGV[3] .. name, ARGV[4] .. name, ARGV[5]) end
  out[#out + 1] = { name, entry[2], task, run, open, over }
end
return out
