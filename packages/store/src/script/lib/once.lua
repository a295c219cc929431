-- Changes of things that have neither a generation nor a fence to compare, such as a setting or the pause of a queue. The caller reads the
-- mark of the newest change first, and its request names it: one that arrives late, when another change has come, does nothing.
--
-- A.subject: of the change; A.seen: the mark that the caller has read, "" none; A.mark: of this change

-- Returns "DONE" if this change was made before (its answer was lost), "STALE" if another one has come since the caller read, or nil.
local function cameBefore()
  local newest = newestMark(A.subject)
  if newest == A.mark then return "DONE" end
  if newest ~= A.seen and ONCE then return "STALE" end
  return nil
end
