-- K.late: the time since which claims of the queue have left something overdue, and the time of the last of them.

-- Returns the first of these; nil if nodes are on time, or were away since.
local function behindSince(now)
  local stored = redis.pcall("GET", K.late)
  -- Foreign data counts as none: a commit has written before it asks.
  local since, last = string.match(type(stored) == "string" and stored or "", "^(%d+) (%d+)$")
  return last and math.abs(now - last) <= F.away and since or nil
end
