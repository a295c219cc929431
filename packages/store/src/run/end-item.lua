-- Stores the end of an attempt at an item, or of an item that does not start. Only the worker that has the item's job may do so.
--
-- A.id: of the run; A.status: "waiting" another attempt follows; A.left: "1" the run's time limit left it for the next run (take-left.lua); A.token: with which the worker took the job; A.details: as JSON, "" none; A.data:
-- replaces the item's data, as JSON, "" as before
-- Returns: 1, or 0 if it is not stored
local state, cancel = unpack(redis.call("HMGET", K.run, "state", "cancel"))
local record = redis.call("HGET", K.items, A.index)
if not state or not record or not isHeldWith(K.job, A.token) then return 0 end
local now = nowMs()
local item = readItem(record)
local began = item.status == "active"
local over = A.status ~= "waiting"
-- It has not begun, so it waits as before.
if not over and not began then return 1 end
-- Not counted if somebody cancelled the run, or if this is sent again.
local left = A.left == "1" and item.status ~= A.status and state ~= "final" and not cancel
local attempts, crashes, inARow, starts = readStarts(redis.call("HGET", K.stats, "starts"))
item.status, item.details = A.status, A.details
item.finished = over and string.format("%d", now) or nil
if began then item.mark = nil end
writeItem(K.items, A.index, item)
if A.data ~= "" then redis.call("HSET", K.items, "d" .. A.index, A.data) end
if left then
  redis.call("HINCRBY", K.items, "left", 1)
  if began then redis.call("HINCRBY", K.items, "torn", 1) end
end
if redis.call("EXISTS", K.task) == 1 then
  -- An attempt that ends, however it ends, begins a new series of crashes.
  if began and inARow ~= "0" then redis.call("HSET", K.stats, "starts", attempts .. " " .. crashes .. " 0" .. starts) end
  if left then redis.call("HSET", K.stats, "left", A.id) end
end
return 1
