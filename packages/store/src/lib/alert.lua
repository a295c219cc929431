-- Alerts wait in a list until a node has delivered them. It is bounded: while no node is alive the oldest are deleted.
local ALERTS_CAP = 10000
local ERROR_CAP = 1024

-- Cuts a text to `most` bytes, at a character boundary.
local function shortened(text, most)
  if #text <= most then return text end
  return (string.gsub(string.sub(text, 1, most), "[\192-\255][\128-\191]*$", ""))
end

-- `what`: fields of the alert, all but `kind` and `at` (a number) may be missing.
local function alert(what)
  if what.error then what.error = shortened(what.error, ERROR_CAP) end
  redis.call("RPUSH", K.alerts, cjson.encode(what))
  redis.call("LTRIM", K.alerts, -ALERTS_CAP, -1)
  local now = string.format("%d", nowMs())
  redis.call("ZADD", K.next, now, F.parts.alerts)
  publish(F.channels.wake, QUEUE .. " " .. F.parts.alerts .. " " .. now)
end

-- Raises an alert once per incident: not again until a run of the task succeeds.
local function incident(what)
  local stats = ours(F.keys.stats, what.task)
  local open = redis.pcall("HGET", stats, "incidents") or ""
  -- The field is corrupt.
  if type(open) == "table" then return alert(what) end
  if string.find(" " .. open .. " ", " " .. what.kind .. " ", 1, true) then return end
  redis.call("HSET", stats, "incidents", open == "" and what.kind or open .. " " .. what.kind)
  alert(what)
end

-- A run succeeded: ends the incidents of its task that do not apply to it. `open`: their kinds; `still`: a set of those
-- that still apply.
local function recover(task, run, now, open, still)
  local left, over = {}, {}
  for kind in string.gmatch(open, "%S+") do
    local list = still[kind] and left or over
    list[#list + 1] = kind
  end
  if #over == 0 then return end
  local stats = ours(F.keys.stats, task)
  if #left == 0 then redis.call("HDEL", stats, "incidents") else redis.call("HSET", stats, "incidents", table.concat(left, " ")) end
  alert({ kind = "recovered", task = task, at = now, run = run, ended = table.concat(over, " ") })
end
