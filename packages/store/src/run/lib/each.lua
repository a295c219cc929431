-- Answers by run: its result; an error reply, because of corrupt data or because Redis accepts no writes; or false if
-- it was not processed, because this script has already deleted its maximum of records.
local function each(step)
  if itemCount == 1 then return { step(eachItem()) } end
  local answers = {}
  for run in eachItem do
    local answer, failed = false, nil
    if forgotten < EXCESS_AT_MOST then answer, failed = tried(step, run) end
    answers[#answers + 1] = failed and redis.error_reply(failed) or answer
  end
  return answers
end

-- Writes the consequences of runs that have ended.
local function afterEach()
  if next(ended) then afterEnds() else wakeForMoved() end
end
