-- What a step answers about each of the script's runs (lib/about.lua). Of one for which it failed, the error: others have written where
-- its keys are, or Redis takes no writes. False: not asked, for as many records went with the runs before it as one script may take.
local function each(step)
  if RUNS == 1 then return { step(about(1)) } end
  local answers = {}
  for n = 1, RUNS do
    local answer, failed = false, nil
    if forgotten < EXCESS_AT_MOST then answer, failed = tried(step, about(n)) end
    answers[n] = failed and redis.error_reply(failed) or answer
  end
  return answers
end

-- What follows from runs that have ended.
local function afterEach()
  if next(ended) then afterEnds(KEYS[6], KEYS[2], KEYS[1]) end
end
