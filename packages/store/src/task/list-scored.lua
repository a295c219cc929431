-- Reads a page of each of several sorted sets of names, by score, then by name. Reads only.
--
-- A.at: from this score on ("" all); A.after: of that score only names after this one ("" all of them);
-- A.most: how many of each
-- Returns: for each set its names and scores in turn
local most = tonumber(A.most)

-- Byte by byte: `<` of Lua compares texts by the server's locale.
local function isAfter(name, other)
  for i = 1, math.max(#name, #other) do
    local a, b = string.byte(name, i) or -1, string.byte(other, i) or -1
    if a ~= b then return a > b end
  end
  return false
end

-- Rank of the first entry to read. Any number of names may have one score: those before `after` are found by bisection.
local function startOf(due)
  if A.at == "" then return 0 end
  local low = redis.call("ZCOUNT", due, "-inf", "(" .. A.at)
  if A.after == "" then return low end
  local high = low + redis.call("ZCOUNT", due, A.at, A.at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if isAfter(redis.call("ZRANGE", due, middle, middle)[1], A.after) then high = middle else low = middle + 1 end
  end
  return low
end

local pages = {}
for i, due in ipairs(K.sets) do
  local start = startOf(due)
  pages[i] = redis.call("ZRANGE", due, start, start + most - 1, "WITHSCORES")
end
return pages
