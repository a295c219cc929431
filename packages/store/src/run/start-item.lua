-- Starts an attempt at an item. An item that is still active has lost its worker: a crash, with the count, the wait and the pause of a
-- run's (lib/crash.lua).
--
-- K.left: BullMQ's set of the run's items that are not done
-- A.token: with which the worker took the job; A.made: attempts that BullMQ counts as made; A.pid, A.worker: of the attempt
-- Returns: { "OK", attempt (from 1), ms left of the run's time limit ("" none), key of its record ("-" none) } |
--          { "LOST" } (another worker has the job) | { "OVER" } (its run has ended, or is cancelled) |
--          { "LIMIT" } (its run has reached its time limit) | { "CRASHED", deaths } | { "WAIT", until, now }
local now = nowMs()
if not isHeldWith(K.job, A.token) then return { "LOST" } end
local state, cancel = unpack(redis.call("HMGET", K.run, "state", "cancel"))
local taskState, crash, open = unpack(redis.call("HMGET", K.task, "state", "crash", "open"))
if not taskState or not state or state == "final" then return { "OVER" } end
local record, limit = unpack(redis.call("HMGET", K.items, A.index, "ends"))
local nowText = string.format("%d", now)
local item = readItem(record or "waiting " .. nowText)
local deaths = tonumber(item.deaths) or 0
local wait, most = crashRule(crash)

if item.status == "active" and item.mark ~= A.token then
  local attempts, crashes, inARow, starts = readStarts(redis.call("HGET", K.stats, "starts"))
  -- Counted in advance: runs that are open, this one only while its own attempt is under way, and its other items.
  local others = countOpen(open, K.open) - (state == "queued" and 1 or 0) + redis.call("SCARD", K.left) - 1
  deaths = deaths + 1
  local notBefore = now + crashWait(wait, deaths, inARow + 1, others)
  item.status, item.deaths, item.mark = "waiting", deaths, string.format("%d", notBefore)
  writeItem(K.items, A.index, item)
  redis.call("HSET", K.stats, "starts", attempts .. " " .. (crashes + 1) .. " " .. (inARow + 1) .. starts)
  redis.call("HINCRBY", K.run, "crashes", 1)
  redis.call("HINCRBY", K.run, "itemCrashes", 1)
end
if cancel then return { "OVER" } end
if deaths >= most then return { "CRASHED", deaths } end
limit = tonumber(limit or nil)
if limit and now >= limit then return { "LIMIT" } end
local notBefore = item.status == "waiting" and tonumber(item.mark) or nil
local held = heldUntil(notBefore, taskState, now)
if held then
  -- For the resume (resume.lua).
  local indexes = redis.call("HGET", K.items, "held") or " "
  if now >= notBefore and #indexes < 4096 and not string.find(indexes, " " .. A.index .. " ", 1, true) then
    redis.call("HSET", K.items, "held", indexes .. A.index .. " ")
  end
  return { "WAIT", math.min(held, limit or held), now }
end
item.status, item.mark, item.finished, item.details = "active", A.token, nil, ""
item.attempts, item.pid, item.worker = A.made + deaths + 1, A.pid, A.worker
if (item.started or "-") == "-" then item.started = nowText end
writeItem(K.items, A.index, item)
redis.call("HDEL", K.items, "o" .. A.index)
return { "OK", item.attempts, limit and limit - now or "", item.key or "-" }
