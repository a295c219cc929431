-- A task's statistics, in a hash of their own. What starts and ends of runs read and write together is one field, its words apart by spaces
-- ("-" none), as in decodeStats (codec.ts):
-- `starts`: attempts, crashes, crashes in a row; then starts of runs, newest first (startsOf)
-- `ends`: failures in a row; outcome, end and ms of the last run; end of the last success; "1" if a run has failed
-- `failing`: end of the first of the failures in a row
-- by outcome: the number of runs, and their ms

-- The words of a field that is missing or corrupt are those of `none`.
local function orNone(none, pattern, first, ...)
  if first then return first, ... end
  return string.match(none, pattern)
end
local function wordsOf(field, pattern, none) return orNone(none, pattern, string.match(field or none, pattern)) end

local function readStarts(field) return wordsOf(field, "^(%-?%d+) (%-?%d+) (%-?%d+)([ %d]*)$", "0 0 0") end
local function readEnds(field) return wordsOf(field, "^(%d+) (%S+) (%S+) (%S+) (%S+) (%S+)$", "0 - - - - -") end
local function readCount(field) return wordsOf(field, "^(%-?%d+) (%-?%d+)$", "0 0") end

local function failuresInARow(statsKey) return (readEnds(redis.call("HGET", statsKey, "ends"))) end

local function lastOutcomeOf(statsKey)
  local _, outcome, finished = readEnds(redis.call("HGET", statsKey, "ends"))
  if outcome ~= "-" then return outcome, tonumber(finished) end
end
