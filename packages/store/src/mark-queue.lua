-- Marks a queue in the registry while a put into it is under way. The value is `stamp mark mark …`: the mark that changed it
-- last, then those of puts in progress, so that no value ever repeats. Sent again, it does nothing twice.
--
-- A.mark: unique; A.begins: "1" the put begins, "" it has ended
-- Returns: revision of the namespace's freezes, "" if it has none
local frozen = redis.call("HGET", K.freezes, F.revision) or ""
local marks, out = {}, false
for mark in string.gmatch(redis.call("HGET", K.queues, A.queue) or "", "%s(%S+)") do
  if mark == A.mark then out = true else marks[#marks + 1] = mark end
end
if out == (A.begins == "1") then return frozen end
if not out then marks[#marks + 1] = A.mark end
-- The end's stamp differs from the beginning's.
local stamp = out and ("-" .. A.mark) or A.mark
redis.call("HSET", K.queues, A.queue, table.concat({ stamp, unpack(marks) }, " "))
return frozen
