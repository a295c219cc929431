-- Record of an item: these words ("-" none), and in a second line details of its end, as JSON. `deaths`: attempts whose worker died. `mark`:
-- of an attempt under way the token with which its worker took the job, of an item that waits the end of its wait after a crash. `key`: the
-- idempotency key from the earlier run that left it. The output of the newest attempt is a field of its own (save-output.lua).
local ITEM_WORDS = { "status", "planned", "started", "finished", "attempts", "pid", "worker", "deaths", "mark", "key" }

local function readItem(text)
  local item, n = { details = string.match(text, "\n(.*)$") or "" }, 0
  for word in string.gmatch(string.match(text, "^[^\n]*"), "%S+") do
    n = n + 1
    item[ITEM_WORDS[n]] = word
  end
  return item
end

local function writeItem(items, index, item)
  local words = {}
  for i, name in ipairs(ITEM_WORDS) do words[i] = item[name] or "-" end
  redis.call("HSET", items, index, table.concat(words, " ") .. "\n" .. item.details)
end
