-- Reads a part of the names of a queue's tasks, with their types, and finds those that contain a text. Reads only.
--
-- A.from, A.to: the range, as ZRANGEBYLEX has it; A.read: how many names to read; A.text: in lower case; A.most: how many to find
-- Returns: { the last name that was checked ("" there are no more), then the names found }
local names = redis.call("ZRANGEBYLEX", K.tasks, A.from, A.to, "LIMIT", 0, A.read)
local most, text, find = tonumber(A.most), A.text, string.find
local found = {}
for i = 1, #names do
  -- Their copies in lower case are in the index: a conversion, or one search in all of them, takes several times as long.
  if find(names[i], text, 1, true) then
    found[#found + 1] = names[i]
    if #found == most then return { names[i], unpack(found) } end
  end
end
return { #names < tonumber(A.read) and "" or names[#names], unpack(found) }
