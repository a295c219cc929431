-- Reads a part of the names of a queue's tasks, with their types, and finds those that contain a text. Reads only.
--
-- A.from, A.to: the range, as ZRANGEBYLEX has it; A.read: how many names to read; A.text: in lower case; A.most: how many to find
-- Returns: { the last name that was checked ("" there are no more), then the names found }
local names = redis.call("ZRANGEBYLEX", K.tasks, A.from, A.to, "LIMIT", 0, A.read)
local most, last = tonumber(A.most), #names < tonumber(A.read) and "" or names[#names]
-- Searches one joined text: converting and searching each name takes several times as long.
local text = string.lower(table.concat(names, "\n"))
local found, line, ends, from = {}, 1, names[1] and #names[1] or 0, 1
while true do
  local at = string.find(text, A.text, from, true)
  if not at then return { last, unpack(found) } end
  while at > ends do
    line = line + 1
    ends = ends + 1 + #names[line]
  end
  found[#found + 1] = names[line]
  if #found == most then return { names[line], unpack(found) } end
  -- Continues in the next line.
  from = ends + 1
end
