-- Alerts wait in a list until a node has delivered them. It is bounded: while no node is alive the oldest are deleted.
local ALERTS_CAP = 10000
local ERROR_CAP = 1024

-- Cuts a text to `most` bytes, at a character boundary.
local function shortened(text, most)
  if #text <= most then return text end
  return (string.gsub(string.sub(text, 1, most), "[\192-\255][\128-\191]*$", ""))
end

-- `at`: a number; `run`, `error`: text or nil.
local function alert(kind, task, at, run, error)
  redis.call("RPUSH", K.alerts, cjson.encode({
    kind = kind, task = task, run = run, at = at, error = run and shortened(error or "", ERROR_CAP),
  }))
  redis.call("LTRIM", K.alerts, -ALERTS_CAP, -1)
  local now = string.format("%.0f", nowMs())
  redis.call("ZADD", K.next, now, F.parts.alerts)
  publish(F.channels.wake, QUEUE .. " " .. F.parts.alerts .. " " .. now)
end
