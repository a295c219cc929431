-- Reads some fields of many hashes in one call, which costs client and server a small part of as many HMGETs. Reads only.
--
-- K.hashes: their keys; A.fields: the names of the fields
-- Returns: for each hash the values in one text, with F.separator between; "" for a missing field, and for all of corrupt data
local texts = {}
for i, hash in ipairs(K.hashes) do
  local values = redis.pcall("HMGET", hash, unpack(A.fields))
  if values.err then values = {} end
  for n = 1, #A.fields do values[n] = values[n] or "" end
  texts[i] = table.concat(values, F.separator)
end
return texts
