import { bullScript } from "./bullmq.js";

/**
 * BullMQ's end of a job and its hand-out of the next one, its own texts, as Lua functions: a turn of a worker calls each of them for many
 * jobs. `test/bullmq-contract.test.ts` pins the texts, compares keys and arguments with what BullMQ itself sends, and what both leave behind.
 */

/** BullMQ's keys that a turn declares. Its `moveToActive` gets the first ten and the marker, `moveToFinished` all, in another order. */
const TURN_KEYS = [
  "wait",
  "active",
  "prioritized",
  "events",
  "stalled",
  "limiter",
  "delayed",
  "paused",
  "meta",
  "pc",
  "completed",
  "metrics:completed",
  "marker",
] as const;

export function bullTurnKeys(bull: string): string[] {
  return TURN_KEYS.map((key) => bull + key);
}

const at = (name: (typeof TURN_KEYS)[number]) => `K.bull[${TURN_KEYS.indexOf(name) + 1}]`;
const COMMON = TURN_KEYS.slice(0, 10).map(at).join(", ");

/**
 * While a script runs nobody else changes the queue: its settings (`meta`) are read once, its events are trimmed once, and delayed jobs are
 * looked for until none is due. The marker, which wakes a worker, is set once at the end, and only if a job waits. An end of a job that finds the
 * queue empty adds the event `drained`: BullMQ takes the next job before it checks that, so the event waits for the takes. Options come unpacked.
 */
const STAND_INS = `
local bullMeta, bullEvents, bullMarker, bullDelayed = ${["meta", "events", "marker", "delayed"].map((name) => at(name as "meta")).join(", ")}
local bullRead, bullTrimmed, bullMarked, bullDrained, bullNoneDelayed, bullAsked = {}, false, false, nil, false, false
local function bullCall(command, key, ...)
  if key == bullMeta then
    if command ~= "HGET" and command ~= "HMGET" then
      bullRead = {}
    else
      local wanted = (...) .. select("#", ...)
      local known = bullRead[wanted]
      if known == nil then
        known = redis.call(command, key, ...)
        bullRead[wanted] = known
      end
      return known
    end
  elseif key == bullEvents then
    if command == "XTRIM" then
      if bullTrimmed then return 0 end
      bullTrimmed = true
    elseif select(3, ...) == "drained" then
      bullDrained = { ... }
      return false
    end
  elseif key == bullMarker and command == "ZADD" and select(2, ...) == "0" then
    bullMarked = true
    return 1
  elseif command == "ZRANGEBYSCORE" and key == bullDelayed then
    if bullNoneDelayed then return {} end
    local due = redis.call(command, key, ...)
    bullNoneDelayed = #due == 0
    return due
  elseif command == "RPOPLPUSH" then
    bullAsked = true
  end
  return redis.call(command, key, ...)
end
local bullRedis = setmetatable({ call = bullCall }, { __index = redis })
local bullPack = setmetatable({ unpack = function(given) return given end }, { __index = cmsgpack })
`;

/**
 * - `bullEnd(id, token, value)`: a job completes. Returns 0, or below 0 what keeps it from that; then nothing is written, except by -3.
 * - `bullTake(token)`: takes the next job, if there is one. Returns what BullMQ's script does, and whether it looked for one.
 * - `bullLeave(took)`: after the last of them.
 *
 * A: `clock` (of the worker, ms), `lock` (how long one lasts, ms), `worker` (its name).
 */
export function bullTurnLua(): string {
  const end = bullScript("moveToFinished");
  const take = bullScript("moveToActive");
  const [endHead, endBody] = split(end, "\nlocal jobIdKey = KEYS[12]");
  const [takeHead, takeRest] = split(take, "\n-- Includes");
  const [takeFunctions, takeBody] = split(
    takeRest,
    "\nlocal isPausedOrMaxed, rateLimitMax, rateLimitDuration =\n    getQueueMetadata(KEYS[9]",
  );
  return `${STAND_INS}
local bullEnd, bullTake
do
  local redis, cmsgpack = bullRedis, bullPack
${endHead}
  local KEYS = { ${COMMON}, ${at("completed")}, "", ${at("metrics:completed")}, ${at("marker")} }
  local opts = { token = "", keepJobs = { count = -1 }, attempts = 0, maxMetricsSize = "", lockDuration = tonumber(A.lock), name = A.worker }
  bullEnd = function(id, token, value)
    KEYS[12], opts.token = BULL .. id, token
    local ARGV = { id, A.clock, "returnvalue", value, "completed", "0", BULL, opts }
${endBody}
  end
end
do
  local redis, cmsgpack = bullRedis, bullPack
  local rcall = redis.call
${takeFunctions}
  local KEYS = { ${COMMON}, ${at("marker")} }
  local opts = { token = "", lockDuration = tonumber(A.lock), name = A.worker }
  local function bullTakeNext(ARGV)
${takeHead}
${takeBody}
  end
  bullTake = function(token)
    opts.token, bullAsked = token, false
    return bullTakeNext({ BULL, A.clock, opts }), bullAsked
  end
end
local function bullLeave(took)
  if bullDrained and not took then redis.call("XADD", bullEvents, unpack(bullDrained)) end
  if bullMarked and redis.call("EXISTS", ${at("wait")}, ${at("prioritized")}) > 0 then redis.call("ZADD", bullMarker, 0, "0") end
end`;
}

function split(text: string, cut: string): [before: string, from: string] {
  const found = text.indexOf(cut);
  if (found < 0) throw new Error("BullMQ has changed a script: bull-turn.ts fits another version.");
  return [text.slice(0, found), text.slice(found)];
}
