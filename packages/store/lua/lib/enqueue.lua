-- The one place where a job is added: BullMQ's own add (lib/bull, made from its scripts), then the run's record.

-- A job's data (JobData). It is put together here, from what a script knows anyway: sent whole, each character would be read,
-- copied and hashed several times. `key`: as JSON, "" queue/owner/id@nominal; `due`: "" the nominal time; `more`: what few have,
-- as JSON after a comma.
local function jobData(payload, queue, owner, id, key, nominal, due, generation, trigger, run, more, enqueued)
  if key == "" then key = '"' .. queue .. "/" .. owner .. "/" .. id .. "@" .. nominal .. '"' end
  if due == "" then due = nominal end
  return '{"payload":' .. payload .. ',"occurrence":{"key":' .. key .. ',"task":"' .. id .. '","owner":"' .. owner
    .. '","queue":"' .. queue .. '","nominal":' .. nominal .. ',"due":' .. due .. ',"generation":' .. generation
    .. ',"trigger":"' .. trigger .. '","run":"' .. run .. '"' .. more .. ',"enqueued":' .. enqueued .. "}}"
end

-- Returns nil, or the error's text; on an error nothing is left behind.
local function enqueue(template, id, data, jobKey)
  local ok, result = pcall(bullAdd, template, id, data, jobKey)
  if ok and (type(result) ~= "number" or result >= 0) then return nil end
  -- Lua has no rollback. Whatever the add wrote before it failed, a job without its key is passed over by workers.
  -- (Only where there is one: a script that has written is let past maxmemory, and the next task would be half done.)
  if redis.call("EXISTS", jobKey) == 1 then redis.pcall("DEL", jobKey) end
  if type(result) == "table" then result = result.err end
  return tostring(result)
end

-- The run's record. Where it would not stay small (LONGEST), and this helps, node and type stand by themselves.
local function recordRun(runKey, name, enqueued, node, details)
  local of = name .. " " .. enqueued .. " " .. node
  if #of <= LONGEST and #details <= LONGEST then
    return redis.call("HSET", runKey, "state", "queued", "of", of, "info", details)
  end
  local begin, more = name .. " " .. enqueued, {}
  if #of > LONGEST and #begin <= LONGEST then
    of = begin
    more = { "node", node }
  end
  local type, rest = string.match(details, '^{"type":"([%w._-]+)",(.*)$')
  if type and #details > LONGEST and #rest < LONGEST then
    details = "{" .. rest
    more[#more + 1] = "type"
    more[#more + 1] = type
  end
  redis.call("HSET", runKey, "state", "queued", "of", of, "info", details, unpack(more))
end
