-- Adds an entry to a log, unless its sender has added it, or a later one, before.
--
-- K.sent: number of the newest entry of this sender, and its id; A.number: of this one; A.entry: JSON
-- Returns: the id of the newest entry of this sender
local newest, id = string.match(redis.call("GET", K.sent) or "", "^(%d+) (%S+)$")
if newest and tonumber(newest) >= tonumber(A.number) then return id end
id = redis.call("XADD", K.changes, "MAXLEN", "~", F.changes, "*", "at", nowMs(), "entry", A.entry)
redis.call("SET", K.sent, A.number .. " " .. id, "PX", F.late)
return id
