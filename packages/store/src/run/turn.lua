-- A worker's turn at its queue: ends runs together with their jobs, and takes new jobs together with the starts of their
-- runs. Handles only cases without a decision: a run that succeeds, and the first attempt of a run. For others the answer is
-- "ASK", or a job without a start: the general scripts handle them (settle-run, start-run).
--
-- A turn whose answer was lost is sent again under its number. It then takes nothing: it returns what it took, as far as those locks are
-- still held. A turn that arrives after a newer one of its lane does nothing: its sender has given it up. K.turn: number of the newest turn,
-- words of its ends (letters), and for each job that it took its id and fence ("-" not started). It stays for F.late.
--
-- A.clock: the worker's own time, as BullMQ takes it; A.token: of the turn; a job's lock is held with it and the job's number in the turn
-- Each: value: the job's result as JSON; result: the run's, "=" the same, "" none
-- Returns: { words of the ends, jobs, rate limit in ms, time of the next delayed job, error ("" none) }
--          word: "OK" | "ASK" (nothing was done) | "ENDED" (the job has ended, and its run could not be written); job: { id, token, its hash,
--          answer of start-run.lua without the word, or none }. Of a turn that arrives late: as if there were no jobs, and "ASK" for each end
local now = nowMs()
local LETTERS = { OK = "O", ASK = "A", ENDED = "E" }
local WORDS = { O = "OK", A = "ASK", E = "ENDED" }

local function endRun(item, run)
  local state, fence, cancel, started, reopened, attempts, place = unpack(redis.call("HMGET", run.key, "state", "fence", "cancel", "started",
    "reopened", "attempts", "place"))
  if state == "final" then
    local same = fence == item.fence and redis.call("HGET", run.key, "outcome") == item.outcome
    return same and jobState(run.job) ~= "live" and "OK" or "ASK"
  end
  if not state or state == "queued" or fence ~= item.fence or cancel then return "ASK" end
  -- No `made`: the job ends with the run, so a later start is a retry from outside (wasRetried).
  local says = {}
  if item.result ~= "" then add(says, "result", item.result == "=" and item.value or item.result) end
  run.ended = false
  local ended = finish(run, item.outcome, now, {
    says = says,
    was = { started, reopened, false, attempts, place },
    survived = true,
    job = function()
      run.ended = bullEnd(run.id, item.token, item.value, item.made)
      return run.ended
    end,
  })
  return ended and "OK" or "ASK"
end

-- The fields of a run that a turn may start: nobody has started it or asked for its cancel, and it may start however soon.
local AS_ENQUEUED = { state = true, of = true, info = true, node = true, type = true, place = true, v = true }

local RUNNER = runnerOf(A.by)

local function startRun(id)
  if bullTried then return nil end
  local key = ours(F.keys.run, id)
  local flat, state, name, info = redis.call("HGETALL", key), nil, nil, nil
  for i = 1, #flat, 2 do
    local field, value = flat[i], flat[i + 1]
    if not AS_ENQUEUED[field] or field == "v" and isNewerRun(value) then return nil end
    if field == "state" then
      state = value
    elseif field == "of" then
      name = string.match(value, "^%S+")
    elseif field == "info" then
      info = value
    end
  end
  if not name or state ~= "queued" then return nil end
  local run = {
    key = key, stats = ours(F.keys.stats, name), by = RUNNER, own = "1",
  }
  local stats = readStatsForStart(run.stats)
  -- Only starts of a task that exists write a fence, and it is deleted with the task.
  if not stats[1] and redis.call("EXISTS", ours(F.keys.task, name)) == 0 then return nil end
  return begin(run, { info = info }, "0", stats, now)
end

local function tokenOf(n) return A.token .. ":" .. whole(n) end

-- The start of a run as `begin` answered it.
local function startOf(id, fence)
  local of, info, held = unpack(redis.call("HMGET", ours(F.keys.run, id), "of", "info", "fence"))
  if held ~= fence then return nil end
  return { "OK", fence, now, info, redis.call("HGET", ours(F.keys.stats, string.match(of, "^%S+")), "checkpoint") or "", 0, 1, 0 }
end

local letters, took = "", {}
local limit, delay, failure = 0, 0, ""

local function answer()
  local words = {}
  for letter in string.gmatch(letters, "%a") do words[#words + 1] = WORDS[letter] end
  return { words, took, limit, delay, failure }
end

local number, lettersBefore, takenBefore = string.match(redis.call("GET", K.turn) or "", "^(%d+) (%a*)(.*)$")
if number and tonumber(A.number) < tonumber(number) then
  for _ in eachItem do letters = letters .. LETTERS.ASK end
  return answer()
elseif number == A.number then
  letters = lettersBefore
  local n = 0
  for id, fence in string.gmatch(takenBefore, " (%S+) (%S+)") do
    n = n + 1
    if isHeldWith(bullKey(id), tokenOf(n)) then
      took[#took + 1] = { id, tokenOf(n), redis.call("HGETALL", bullKey(id)), startOf(id, fence) }
    end
  end
  return answer()
end

-- The record of this turn. Before the ends it is written as it will be if each succeeds and nothing is taken.
local record, kept = {}, nil
local function keepTurn(words)
  local text = A.number .. " " .. words .. table.concat(record)
  if text ~= kept then redis.call("SET", K.turn, text, "PX", F.late) end
  kept = text
end
if itemCount > 0 then keepTurn(string.rep(LETTERS.OK, itemCount)) end

for item in eachItem do
  local run = runOf(item.id, item.name, item.shard)
  local word, failed = "ASK", nil
  if forgotten < EXCESS_AT_MOST then word, failed = tried(endRun, item, run) end
  if failed then word = run.ended and "ENDED" or "ASK" end
  letters = letters .. LETTERS[word]
end
bullEnded()

-- Number of takes before the next check whether jobs wait: a turn without ends is sent because one does.
local likely = itemCount == 0 and 1 or 0
for n = 1, tonumber(A.take) do
  if n > likely then
    if bullIsEmpty() then break end
    -- If foreign data is in the way, the take reports it.
    likely = n - 1 + (tried(bullWaits) or 0)
  end
  local token = tokenOf(n)
  local got, failed = tried(bullTake, token)
  if failed then
    failure = failed
    break
  end
  local job, id = got[1], got[2]
  if type(job) ~= "table" then
    limit, delay = got[3], got[4]
    break
  end
  local start = tried(startRun, id)
  took[n] = { id, token, job, start }
  record[n] = " " .. id .. " " .. (start and start[2] or "-")
end
keepTurn(letters)
bullLeave()
bullDrained(#took > 0)
if next(ended) then afterEnds() else wakeForMoved() end
return answer()
