-- What a step answers about each of the script's runs (lib/about.lua). False: that one is to be asked about alone. Either the step
-- failed, for others have written where its keys are; then, alone, the error is the script's. Or as many records went with the runs
-- before it as one script may take.
local function each(step)
  if RUNS == 1 then return { step(about(1)) } end
  local answers = {}
  for n = 1, RUNS do
    local done, answer
    if forgotten < EXCESS_AT_MOST then done, answer = pcall(step, about(n)) end
    answers[n] = done and answer or false
  end
  return answers
end

-- What follows from runs that have ended.
local function afterEach()
  if next(ended) then afterEnds(KEYS[6], KEYS[2], KEYS[1]) end
end
