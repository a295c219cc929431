-- Lists names in a queue that begin with a text, in their order. Reads only.
--
-- A.of: "owner" or "tag"; A.starts; A.owner: only tags of this owner's tasks, "" all; A.most: how many to list
-- Returns: the names
local most, from, found = tonumber(A.most), "[" .. A.starts, {}
-- The next entry of an index, if it begins with the text.
local function nextOf(index)
  local name = redis.call("ZRANGEBYLEX", index, from, "+", "LIMIT", 0, 1)[1]
  return name and string.sub(name, 1, #A.starts) == A.starts and name
end
if A.of == "owner" then
  local name = nextOf(K.tasks)
  while name and #found < most do
    found[#found + 1] = ownerOf(name)
    -- All entries of an owner begin with `owner/`, and "0" follows "/".
    from = "[" .. ownerOf(name) .. "0"
    name = nextOf(K.tasks)
  end
  return found
end
for _, tag in ipairs(redis.call("ZRANGEBYLEX", K.tags, from, "[" .. A.starts .. "\255", "LIMIT", 0, A.owner == "" and most or 1000)) do
  local first, last = "[" .. A.owner .. "/", "(" .. A.owner .. "0"
  local shown = A.owner == "" or #redis.pcall("ZRANGEBYLEX", ours(F.keys.tagged, tag), first, last, "LIMIT", 0, 1) == 1
  if shown and #found < most then found[#found + 1] = tag end
end
return found
