-- Starts an attempt, once all checks have passed. `run`: key and stats as for lib/run.lua; by: of
-- runnerOf; own as for start-run.lua.

-- Fields of a run's record that a start depends on. `rules`: "<rule> <ms>" each; `again`: it continues an attempt.
local START_FIELDS = {
  "state", "outcome", "made", "cancel", "info", "notBefore", "started", "worker", "attempts", "fence", "crashes", "trace", "again",
  "crashed", "v", "rules", "itemCrashes",
}
local function readStart(runKey)
  local was = {}
  for i, value in ipairs(redis.call("HMGET", runKey, unpack(START_FIELDS))) do was[START_FIELDS[i]] = value or nil end
  return was
end

-- The ms of a rule that the start obeys; nil: none. `minGap`: least time from the start of the run before.
local function ruleOf(was, name) return was.rules and tonumber(string.match(was.rules, name .. " (%d+)")) end

-- The fields that name the process which runs an attempt, and their values: `worker w1 pid 17 host h1`.
local function runnerOf(text)
  local runner = { names = {}, fields = {} }
  for name, value in string.gmatch(text, "(%S+) (%S+)") do
    add(runner.names, name)
    add(runner.fields, name, value)
  end
  return runner
end

-- Fields of its task's statistics, in the order of `stats`.
local function readStatsForStart(statsKey) return redis.call("HMGET", statsKey, "fence", "starts", "checkpoint") end

-- `made`: attempts that BullMQ counts as made. Returns the answer of start-run.lua.
local micros
local function begin(run, was, made, stats, now)
  -- Follows the clock, and never goes back: a task that was deleted and put again continues above its old fences, and a start that a
  -- failover lost is not numbered like the next one.
  micros = micros or tonumber(nowMicros())
  local fence = string.format("%d", math.max((tonumber(stats[1]) or 0) + 1, micros))
  local nowText = whole(now)
  local before = tonumber(was.attempts) or 0
  -- A plain worker may have made attempts that only BullMQ counts.
  local attempt = math.max(before + (was.again and 0 or 1), tonumber(made) + 1)
  local attempts, crashes, inARow, starts = readStarts(stats[2])
  if not was.started then starts = " " .. nowText .. (#starts > LONG_STARTS and " " .. table.concat(startsOf(starts), " ") or starts) end
  if attempt > before then attempts = whole(attempts + 1) end
  redis.call("HSET", run.stats, "fence", fence, "starts",
    attempts .. " " .. whole(crashes + 1) .. " " .. whole(inARow + 1) .. starts)
  if was.notBefore or was.again then redis.call("HDEL", run.key, "notBefore", "again") end
  -- `a:<attempt>`: its start, and the worker's own number for it. The newest attempt's runner is in fields of its own,
  -- and moves here at the next start.
  local since, former = nowText, nil
  if before > 0 then
    local newest = redis.call("HMGET", run.key, "a:" .. before, unpack(run.by.names))
    local began, number = string.match(newest[1] or "", "^(%d+) (%d+)$")
    if attempt == before then
      since = string.match(newest[1] or "", "^%d+") or since
    elseif began then
      former = began
      for i = 1, #run.by.names do former = former .. " " .. (newest[i + 1] or "-") end
      former = former .. " " .. number
    end
  end
  local fields = {
    "state", "running", "fence", fence, "attempts", whole(attempt), "a:" .. whole(attempt), since .. " " .. run.own,
    unpack(run.by.fields),
  }
  if former then add(fields, "a:" .. before, former) end
  if not was.started then add(fields, "started", nowText) end
  redis.call("HSET", run.key, unpack(fields))
  return { "OK", fence, now, was.info, stats[3] or "", tonumber(was.crashes or 0), attempt, attempt == before and 1 or 0 }
end
