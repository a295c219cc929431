-- Quotas of jobs that wait: as copy-freezes.lua wrote them.

-- Jobs of all owners that a worker could take.
local function allWaiting()
  return redis.call("LLEN", bullKey("wait")) + redis.call("LLEN", bullKey("paused")) + redis.call("ZCARD", bullKey("prioritized"))
end

-- Open runs of an owner, without those that a worker holds.
local HELD_AT_MOST = 500
local function waitingOf(owner, most)
  local places = ours(F.keys.places, owner)
  local waiting = redis.call("ZCARD", places)
  if waiting < most then return waiting end
  local held = redis.call("LRANGE", bullKey("active"), 0, HELD_AT_MOST - 1)
  if #held == 0 then return waiting end
  for _, at in ipairs(redis.call("ZMSCORE", places, unpack(held))) do
    if at then waiting = waiting - 1 end
  end
  return waiting
end

-- The owners among these whose quota of waiting jobs is used up, separated by spaces. `most`: as stored; `owners`: a set.
local function fullOwners(most, owners)
  if not most then return "" end
  local known, full = cjson.decode(most), {}
  local all = known[F.everyone] and allWaiting() >= known[F.everyone]
  for owner in pairs(owners) do
    local limit = known[owner] or known[F.anyOwner]
    if all or limit and waitingOf(owner, limit) >= limit then full[#full + 1] = owner end
  end
  return table.concat(full, " ")
end
