-- How an attempt starts, once nothing speaks against it. `run`: key, task and stats as for lib/run.lua; worker, pid, host and own as for
-- start-run.lua.

-- Fields of a run's record that a start depends on, in the order of `was`.
local function readStart(runKey)
  return redis.call("HMGET", runKey, "state", "outcome", "made", "cancel", "info", "notBefore", "started", "worker", "attempts",
    "fence", "crashes", "trace", "again", "crashed", "of")
end

local function readStarts(statsKey)
  return redis.call("HMGET", statsKey, "lastStart", "attempts", "crashes", "consecutiveCrashes", "checkpoint", "starts")
end

-- `made`: attempts that BullMQ counts as made; `stats`: what readStarts read. Returns the answer of start-run.lua.
local function begin(run, was, made, stats, now)
  local fence = redis.call("HINCRBY", run.task, "fence", 1)
  if fence == 1 then
    -- From the clock on, as the generation: a task that was deleted and put again goes on above its old fences.
    fence = nowMicros()
    redis.call("HSET", run.task, "fence", fence)
  end
  local last = stats[1]
  local function grown(n, by) return whole((tonumber(stats[n]) or 0) + by) end
  local before = tonumber(was[9]) or 0
  -- A plain worker may have made attempts that only BullMQ counts.
  local attempt = math.max(before + (was[13] and 0 or 1), tonumber(made) + 1)
  local counts, fields = {}, {}
  if not was[7] then
    add(fields, "started", whole(now))
    counts = last and { "lastStart", whole(now), "starts", table.concat(startsOf(last, stats[6]), " ") } or { "lastStart", whole(now) }
  end
  redis.call("HSET", run.stats, "attempts", grown(2, attempt > before and 1 or 0), "crashes", grown(3, 1),
    "consecutiveCrashes", grown(4, 1), unpack(counts))
  if was[6] or was[13] then redis.call("HDEL", run.key, "notBefore", "again") end
  -- `a:<attempt>`: since when, and the worker's own number. The newest attempt's worker is in fields of its own, and moves here at the
  -- next start.
  local since = whole(now)
  if before > 0 then
    local newest = redis.call("HMGET", run.key, "a:" .. before, "worker", "pid", "host")
    local began, number = string.match(newest[1] or "", "^(%d+) (%d+)$")
    if attempt == before then
      since = string.match(newest[1] or "", "^%d+") or since
    elseif began then
      add(fields, "a:" .. before, table.concat({ began, newest[2] or "-", newest[3] or "-", newest[4] or "-", number }, " "))
    end
  end
  add(fields, "a:" .. attempt, since .. " " .. run.own)
  add(fields, "attempts", whole(attempt))
  redis.call("HSET", run.key, "state", "running", "fence", fence, "worker", run.worker, "pid", run.pid, "host", run.host,
    unpack(fields))
  return { "OK", fence, now, was[5], stats[5] or "", tonumber(was[11] or 0), attempt, attempt == before and 1 or 0 }
end
