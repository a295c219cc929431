-- The ledger: what was not enqueued, and why. Newest first, `reason from to count at by`; bounded; an entry equal in
-- reason to the newest one extends it (consecutive skips are one range).
local LEDGER_CAP = 50

local function record(ledgerKey, reason, from, to, now, by)
  local newest = redis.call("LINDEX", ledgerKey, 0)
  if newest then
    local r, f, _, n = string.match(newest, "^(%S+) (%S+) (%S+) (%S+)")
    if r == reason then
      redis.call("LSET", ledgerKey, 0, table.concat({ r, f, to, n + 1, now, by }, " "))
      return
    end
  end
  redis.call("LPUSH", ledgerKey, table.concat({ reason, from, to, 1, now, by }, " "))
  redis.call("LTRIM", ledgerKey, 0, LEDGER_CAP - 1)
end
