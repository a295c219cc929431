-- `next` holds for each part of a queue (a shard, or one of F.parts) the earliest time at which a node must check it. It is all that
-- an idle node reads.

-- Sets the part's time to that of the first member of `source`. Returns it, or nil.
local function rearm(part, source)
  local head = redis.call("ZRANGE", source, "0", "0", "WITHSCORES")[2]
  if head then
    redis.call("ZADD", K.next, head, part)
  else
    redis.call("ZREM", K.next, part)
  end
  return head
end

-- rearm, for a part whose source has got members and lost none; the first of these is at `at`.
local function rearmBy(part, at) redis.call("ZADD", K.next, "LT", at, part) end

-- rearm, and a message to the nodes (`queue part time`) if the part's time is an earlier one now.
local function rearmAndWake(part, source)
  local before = redis.call("ZSCORE", K.next, part)
  local head = rearm(part, source)
  if head and (not before or tonumber(head) < tonumber(before)) then
    publish(F.channels.wake, QUEUE .. " " .. part .. " " .. head)
  end
end
