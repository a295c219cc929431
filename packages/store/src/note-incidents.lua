-- Raises alerts about the whole namespace, each once, and one when its cause is over.
--
-- Returns: "OK" | "DONE" | "STALE" (lib/once.lua)
-- Each: id; lasts: "1" for long enough to raise its alert; alert: as JSON
local before = cameBefore()
if before then return before end
local now = nowMs()
local known, present, changed = {}, {}, false
local flat = redis.call("HGETALL", K.incidents)
for i = 1, #flat, 2 do known[flat[i]] = flat[i + 1] end
for item in eachItem do
  present[item.id] = true
  if item.lasts == "1" and not known[item.id] then
    changed = true
    redis.call("HSET", K.incidents, item.id, item.alert)
    alert(cjson.decode(item.alert))
  end
end
for id, text in pairs(known) do
  if not present[id] then
    changed = true
    redis.call("HDEL", K.incidents, id)
    local readable, was = pcall(cjson.decode, text)
    if readable then
      was.kind, was.ended, was.at = "recovered", was.kind, now
      alert(was)
    end
  end
end
if changed then markChange(A.subject, A.mark) end
return "OK"
