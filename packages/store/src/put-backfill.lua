-- Stores a backfill, or ends it.
--
-- K.task: its task, if it is new; A.created: the creation time that it must have, "" any
-- A.state: that it must be in ("" it must not exist); A.after: ms until it is checked; A.fields: field and value of what is set
-- A.due: time of its check that the caller knows, "" none: another one is a newer request's
-- A.turn: the call must still have the turn in this queue; "" it needs none
-- Returns: "OUTRUN" (another call has it) | "OK" | "MISSING" | "STALE" | "MOVING <mark>" (its task is held for a move)
local state = redis.call("HGET", K.backfill, "state")
if (state or "") ~= A.state then return state and "STALE" or "MISSING" end
if A.due ~= "" and redis.call("ZSCORE", K.backfills, A.id) ~= A.due then return "STALE" end
if A.created ~= "" then
  local created, rev = unpack(redis.call("HMGET", K.task, "created", "rev"))
  if createdAt(created, rev) ~= tonumber(A.created) then return "MISSING" end
end
if A.turn ~= "" and redis.call("GET", K.replaying) ~= A.turn then return "OUTRUN" end
local moving = A.state == "" and redis.call("HGET", K.task, "moving")
if moving then return "MOVING " .. moving end
local now = nowMs()
if A.state == "" then redis.call("HSET", K.backfill, "created", now) end
redis.call("HSET", K.backfill, unpack(A.fields))
redis.call("ZADD", K.backfills, now + tonumber(A.after), A.id)
rearmAndWake(F.parts.backfills, K.backfills)
return "OK"
