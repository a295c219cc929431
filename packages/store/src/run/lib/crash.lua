-- A crash: an attempt at a run, or at an item, never ended, since its worker died. Both wait by the same rule before their next attempt.

-- Wait before a job that only its task's pause holds is checked again (ms). The resume promotes its job; this is for a job that
-- a worker holds at that moment.
local HELD_FOR = 60000

-- The first wait, and the number of deaths at which a job is given up. `crash`: of its task
local function crashRule(crash)
  local wait, most = string.match(crash or "", "^(%d+) (%d+)$")
  return tonumber(wait or F.crash.delay), tonumber(most or F.crash.attempts)
end

-- The wait after the nth death of a job. It doubles with each crash of the task in a row. `others`: other attempts of the task, which may
-- count one each until their end.
local function crashWait(wait, deaths, inARow, others)
  return math.min(wait * 2 ^ (math.max(deaths, inARow - others) - 1), math.max(wait, F.crash.longest))
end

-- Time before which a job that crashed does not start; nil: now. The wait gives people the time to stop the task: a pause holds the job in it.
local function heldUntil(notBefore, taskState, now)
  if not notBefore or now < notBefore then return notBefore end
  return taskState == "paused" and now + HELD_FOR or nil
end

-- Number of runs of a task that are not final. `open`: of the task
local function countOpen(open, openKey) return open == F.inSet and redis.call("ZCARD", openKey) or 1 end
