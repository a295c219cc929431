-- Keys of a queue and channels of its namespace that are known only in the script. Every key of a queue begins with
-- `{namespace:queue}`; the script's first key is one of them.
local NAMESPACE, QUEUE = string.match(KEYS[1], "^{([^:}]*):([^}]*)}")
local OURS = "{" .. NAMESPACE .. ":" .. QUEUE .. "}:~"

-- `prefix`: one of F.keys.
local function ours(prefix, name) return OURS .. prefix .. name end

-- `name`: `owner/id`.
local function ownerOf(name) return string.match(name, "^[^/]+") end

local function publish(channel, text) redis.call("PUBLISH", "{" .. NAMESPACE .. "}" .. channel, text) end
