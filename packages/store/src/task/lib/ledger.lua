-- The ledger: occurrences that were not enqueued, and why. Newest first, `reason from to count at by run [note]`; bounded; an entry equal in
-- reason to the newest one extends it if nothing was decided between the two: a range names skipped times only.
-- Newest skips of the queue, for those who watch it live. A few more may be kept.
local WATCHED = 100

-- Returns how many decisions the newest entry stands for. `seen`: the run in the way, or "-". `cursor`: the last time that was decided before `from`, or false. `note`: text or nil.
local function record(ledgerKey, reason, from, to, now, by, seen, cursor, note)
  local newest = redis.call("LINDEX", ledgerKey, 0)
  local name = string.sub(ledgerKey, #OURS + #F.keys.ledger + 1)
  redis.call("XADD", ours(F.keys.skips, ""), "MAXLEN", "~", WATCHED, "*", "skip", table.concat({ name, reason, from, to }, " "))
  if newest then
    local r, f, t, n = string.match(newest, "^(%S+) (%S+) (%S+) (%S+)")
    if r == reason and t == cursor and (not note or string.sub(newest, -#note - 1) == " " .. note) then
      redis.call("LSET", ledgerKey, 0, table.concat({ r, f, to, n + 1, now, by, seen, note }, " "))
      return n + 1
    end
  end
  local entries = redis.call("LPUSH", ledgerKey, table.concat({ reason, from, to, 1, now, by, seen, note }, " "))
  if entries > F.ledgerMost then redis.call("LTRIM", ledgerKey, 0, F.ledgerMost - 1) end
  return 1
end
