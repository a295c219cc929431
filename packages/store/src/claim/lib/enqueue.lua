-- The one place where a job is added: BullMQ's own add (made from its scripts, bullmq.ts), then the run's record.

-- A job's data (JobData). It is built here from values that the script has anyway: Redis would read, copy and hash each
-- character of a complete text several times. `of`: owner and id of the task; key: as JSON, "" queue/owner/id@nominal;
-- nominal; jobDue: "" the nominal
-- time; trigger; more: what few have, as JSON after a comma; payload. `trace`: a traceparent, nil none.
local function jobData(of, run, generation, enqueued, trace)
  local owner, id, key, nominal, due = of.owner, of.id, of.key, of.nominal, of.jobDue
  if key == "" then key = '"' .. QUEUE .. "/" .. owner .. "/" .. id .. "@" .. nominal .. '"' end
  if due == "" then due = nominal end
  return '{"payload":' .. of.payload .. ',"occurrence":{"key":' .. key .. ',"task":"' .. id .. '","owner":"' .. owner
    .. '","queue":"' .. QUEUE .. '","nominal":' .. nominal .. ',"due":' .. due .. ',"generation":' .. generation
    .. ',"trigger":"' .. of.trigger .. '","run":"' .. run .. '"' .. of.more .. (trace and ',"trace":' .. cjson.encode(trace) or "") .. ',"enqueued":' .. enqueued .. "}}"
end

-- Returns nil, or the error's text; on an error nothing is left behind. A job that has the id already is never taken for the new one.
local function enqueue(template, id, data, jobKey, trace)
  if redis.call("EXISTS", jobKey) == 1 then return "a job has the id " .. id .. " already" end
  local ok, result = pcall(bullAdd, template, id, data, jobKey, trace)
  if ok and (type(result) ~= "number" or result >= 0) then return nil end
  -- Lua has no rollback, but workers skip a job without its key: deleting the key undoes a failed add.
  -- (Only if it exists: after a write, Redis no longer refuses for lack of memory, and the next task would be half done.)
  if redis.call("EXISTS", jobKey) == 1 then redis.pcall("DEL", jobKey) end
  if type(result) == "table" then result = result.err end
  return tostring(result)
end

-- A record of the first format names none.
local FORMAT = F.runFormat > 1 and { "v", F.runFormat } or {}

-- The run's record. If it would not stay small (F.longestSmallValue), and this helps, node and type get fields of their own. `rules`: what its start
-- obeys, "<rule> <ms>" each, "" nothing. A turn leaves a run with rules to start-run.lua.
local function recordRun(runKey, name, enqueued, node, details, rules)
  local of, more = name .. " " .. enqueued .. " " .. node, FORMAT
  if rules ~= "" then more = { "rules", rules, unpack(FORMAT) } end
  if #of <= F.longestSmallValue and #details <= F.longestSmallValue then
    return redis.call("HSET", runKey, "state", "queued", "of", of, "info", details, unpack(more))
  end
  local begin = name .. " " .. enqueued
  more = { unpack(more) }
  if #of > F.longestSmallValue and #begin <= F.longestSmallValue then
    of = begin
    more[#more + 1], more[#more + 2] = "node", node
  end
  local type, rest = string.match(details, '^{"type":"([%w._-]+)",(.*)$')
  if type and #details > F.longestSmallValue and #rest < F.longestSmallValue then
    details = "{" .. rest
    more[#more + 1] = "type"
    more[#more + 1] = type
  end
  redis.call("HSET", runKey, "state", "queued", "of", of, "info", details, unpack(more))
end
