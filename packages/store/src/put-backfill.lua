-- Stores a backfill, or ends it.
--
-- A.state: that it must be in ("" it must not exist); A.after: ms until it is checked; A.fields: field and value of what is set
-- Returns: "OK" | "MISSING" | "STALE"
local state = redis.call("HGET", K.backfill, "state")
if (state or "") ~= A.state then return state and "STALE" or "MISSING" end
local now = nowMs()
if A.state == "" then redis.call("HSET", K.backfill, "created", now) end
redis.call("HSET", K.backfill, unpack(A.fields))
redis.call("ZADD", K.backfills, now + tonumber(A.after), A.id)
rearmAndWake(F.parts.backfills, K.backfills)
return "OK"
