-- Those of some runs that failed, and of each error only what tells its cause: its first line, and the frame of its stack that is the
-- user's own. Reads only.
--
-- K.runs: their records
-- Returns: { errors, runs }
--          error: outcome, first line, frame ("" none), a line each; run: number of its error, its number in K.runs, task
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

local errors, numbers, runs = {}, {}, {}
for i, key in ipairs(K.runs) do
  local of, outcome, text = unpack(redis.pcall("HMGET", key, "of", "outcome", "error"))
  local name = string.match(of or "", "^%S+")
  if name and outcome and F.failures[outcome] then
    text = text or ""
    local line = string.sub(string.match(text, "^[^\n]*"), 1, LONGEST_LINE)
    local error = outcome .. "\n" .. line .. "\n" .. frameOf(text)
    if not numbers[error] then
      errors[#errors + 1] = error
      numbers[error] = #errors
    end
    runs[#runs + 1] = numbers[error] .. " " .. i .. " " .. name
  end
end
return { errors, runs }
