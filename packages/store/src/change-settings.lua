-- Changes fields of a hash of settings.
--
-- A.set: field and value of each that is set; A.drop: fields that are deleted
-- Returns: "OK" | "DONE" | "STALE" (lib/once.lua)
local before = cameBefore()
if before then return before end
if #A.set > 0 then redis.call("HSET", K.settings, unpack(A.set)) end
if #A.drop > 0 then redis.call("HDEL", K.settings, unpack(A.drop)) end
markChange(A.subject, A.mark)
return "OK"
