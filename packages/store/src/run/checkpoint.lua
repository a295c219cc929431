-- Stores a handler's checkpoint for the next run of its task. Only the attempt that holds the run's fence may do so.
--
-- A.value: as JSON; A.number: of this checkpoint among those of its worker. An older one that arrives late does nothing.
-- Returns: "OK" | "FENCED" | "GONE" | "FINAL"
local state, fence, kept = unpack(redis.call("HMGET", K.run, "state", "fence", "kept"))
if not state or redis.call("EXISTS", K.task) == 0 then return "GONE" end
if state == "final" then return "FINAL" end
if fence ~= A.fence then return "FENCED" end
local by, number = string.match(kept or "", "^(%d+) (%d+)$")
if by == fence and tonumber(number) >= tonumber(A.number) then return "OK" end
redis.call("HSET", K.run, "checkpoint", A.value, "kept", fence .. " " .. A.number)
redis.call("HSET", K.stats, "checkpoint", A.value)
return "OK"
