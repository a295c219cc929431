-- Marks a queue in the registry while a put into it is under way. The value is `stamp mark mark …`: the marks that are
-- out, after the mark that changed it last, so that no value ever comes again. Sent again, it does nothing twice.
--
-- KEYS: 1 queues
-- ARGV: 1 queue, 2 mark (unique), 3 "1" the put begins, "0" it has ended
-- Returns: 1 where the value changed
local marks, out = {}, false
for mark in string.gmatch(redis.call("HGET", KEYS[1], ARGV[1]) or "", "%s(%S+)") do
  if mark == ARGV[2] then out = true else marks[#marks + 1] = mark end
end
if out == (ARGV[3] == "1") then return 0 end
if not out then marks[#marks + 1] = ARGV[2] end
-- The end's stamp differs from the beginning's.
local stamp = out and ("-" .. ARGV[2]) or ARGV[2]
redis.call("HSET", KEYS[1], ARGV[1], table.concat({ stamp, unpack(marks) }, " "))
return 1
