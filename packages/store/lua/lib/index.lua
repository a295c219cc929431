-- Indexes. `next` names, for each part of a queue (a shard, or `r` for the reconciler), the earliest time at which
-- a node must look at it; it is all that an idle node ever reads.

-- Makes `next` say what `source` (a due index, or the runs) now begins with. Returns that time, or nil.
local function rearm(nextKey, part, source)
  local head = redis.call("ZRANGE", source, 0, 0, "WITHSCORES")[2]
  if head then
    redis.call("ZADD", nextKey, head, part)
  else
    redis.call("ZREM", nextKey, part)
  end
  return head
end

-- Puts a task into its shard's due index, or takes it out where due is "".
local function setDue(dueKey, member, due)
  if due == "" then
    redis.call("ZREM", dueKey, member)
  else
    redis.call("ZADD", dueKey, due, member)
  end
end

-- A task's next nominal time ("" none) and its due time; the hash holds that only where it is another one (jitter).
local function setTimes(taskKey, nominal, due)
  if nominal == "" then
    redis.call("HDEL", taskKey, "nominal", "due")
  elseif nominal == due then
    redis.call("HSET", taskKey, "nominal", nominal)
    redis.call("HDEL", taskKey, "due")
  else
    redis.call("HSET", taskKey, "nominal", nominal, "due", due)
  end
end

-- When a task comes next that waits for its run's end, from now: after all that was decided already, wherever the clock is.
local function afterEnd(taskKey, now, delay)
  local cursor = tonumber(redis.call("HGET", taskKey, "cursor") or 0) or 0
  return string.format("%.0f", math.max(now + delay, cursor + 1))
end

-- A plan made anew: the task's next time ("" none), and its place in the due index. What waits is looked at now, and put off
-- again if it must.
local function setPlan(taskKey, dueKey, member, state, nominal, due, now)
  setTimes(taskKey, nominal, due)
  local at = ""
  if state == "scheduled" then at = redis.call("HEXISTS", taskKey, "pending") == 1 and now or due end
  setDue(dueKey, member, at)
end

-- Only tasks that have a priority are listed; without any, nobody need look.
local function setPriority(prioritiesKey, member, priority)
  if priority then
    redis.call("HSET", prioritiesKey, member, priority)
  else
    redis.call("HDEL", prioritiesKey, member)
  end
end

-- rearm, and tell the nodes (`queue part time`) where the part's earliest time came nearer.
local function rearmAndWake(nextKey, part, source, channel, queue)
  local before = redis.call("ZSCORE", nextKey, part)
  local head = rearm(nextKey, part, source)
  if head and (not before or tonumber(head) < tonumber(before)) then
    redis.call("PUBLISH", channel, table.concat({ queue, part, head }, " "))
  end
end
