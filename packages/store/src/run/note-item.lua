-- Stores the start of an attempt at an item, or its end. Only the worker that has the item's job may do so.
--
-- A record: status, planned, started, finished, attempts, pid, worker ("-" none), attempts whose worker died, and in a second line the details.
-- Its output is a field of its own (save-output.lua): that of the newest attempt.
-- A.status: a start is "active"; A.attempts, A.pid, A.worker: of the attempt, "" as before; A.crashes; A.token: with which the worker took the
-- job; A.details: as JSON, "" none; A.data: replaces the item's data, as JSON, "" as before
-- Returns: 1, or 0 if it is not stored
local was = redis.call("EXISTS", K.run) == 1 and redis.call("HGET", K.items, A.index)
if not was or not isHeldWith(K.job, A.token) then return 0 end
local now = string.format("%.0f", nowMs())
local _, planned, started, _, attempts, pid, worker = string.match(was, "^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)")
if A.status == "active" and started == "-" then started = now end
local over = A.status ~= "active" and A.status ~= "waiting"
if A.attempts ~= "" then attempts, pid, worker = A.attempts, A.pid, A.worker end
local head = table.concat({ A.status, planned, started, over and now or "-", attempts, pid, worker, A.crashes }, " ")
redis.call("HSET", K.items, A.index, head .. "\n" .. A.details)
if A.status == "active" then redis.call("HDEL", K.items, "o" .. A.index) end
if A.data ~= "" then redis.call("HSET", K.items, "d" .. A.index, A.data) end
return 1
