-- Failed runs among those that ended, newest first, and of each error only what tells its cause: its first line, and the frame of its
-- stack that is the user's own. Reads only.
--
-- K.journal; A.from, A.to: of the end; A.offset, A.count: of the ends that are looked at
-- Returns: { looked at, newest and oldest end of them, errors, runs }
--          error: outcome, first line, frame ("" none), a line each; run: number of its error, end, id, task
local LONGEST_LINE, LONGEST_FRAME = 500, 300

-- The first frame that is neither of a dependency nor of Node.js.
local function frameOf(text)
  for frame in string.gmatch(text, "\n%s+at ([^\n]+)") do
    if not string.find(frame, "node_modules", 1, true) and not string.find(frame, "node:", 1, true) then
      return string.sub(frame, 1, LONGEST_FRAME)
    end
  end
  return ""
end

local ends = redis.call("ZREVRANGEBYSCORE", K.journal, A.to, A.from, "WITHSCORES", "LIMIT", A.offset, A.count)
local errors, numbers, runs = {}, {}, {}
for i = 1, #ends, 2 do
  local id = ends[i]
  local of, outcome, text = unpack(redis.pcall("HMGET", ours(F.keys.run, id), "of", "outcome", "error"))
  local name = string.match(of or "", "^%S+")
  if name and outcome and F.failures[outcome] then
    text = text or ""
    local line = string.sub(string.match(text, "^[^\n]*"), 1, LONGEST_LINE)
    local error = outcome .. "\n" .. line .. "\n" .. frameOf(text)
    if not numbers[error] then
      errors[#errors + 1] = error
      numbers[error] = #errors
    end
    runs[#runs + 1] = numbers[error] .. " " .. ends[i + 1] .. " " .. id .. " " .. name
  end
end
return { #ends / 2, ends[2] or "", ends[#ends] or "", errors, runs }
