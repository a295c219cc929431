import type { Bull } from "./load.js";

/**
 * BullMQ's own script that hands out a job, as a Lua function: a turn of a worker calls it for many jobs.
 * `test/bullmq-contract.test.ts` pins its text, and compares keys and arguments with those that BullMQ sends;
 * `test/turn.test.ts` compares the resulting data.
 */

/** BullMQ's keys that a turn declares. Its `moveToActive` gets the first ten and the marker. */
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
  "marker",
  "completed",
] as const;

export function bullTurnKeys(bull: string): string[] {
  return TURN_KEYS.map((key) => bull + key);
}

const at = (name: (typeof TURN_KEYS)[number]) => `K.bull[${TURN_KEYS.indexOf(name) + 1}]`;
const TAKE_KEYS = TURN_KEYS.slice(0, 11).map(at).join(", ");

/**
 * While a script runs nobody else changes the queue: its settings (`meta`) are read once, and delayed jobs are looked
 * for until none is due. A job's new fields are written together once it is read. The marker, which wakes a worker, is
 * set once at the end, and only if a job waits. Options come unpacked. `bullTried`: whether the newest job was tried
 * before, by any worker, or is to fail.
 */
const STAND_INS = `
local bullMeta, bullMarker, bullDelayed = ${["meta", "marker", "delayed"].map((name) => at(name as "meta")).join(", ")}
local bullSettings, bullMarked, bullNoneDelayed, bullSet, bullTried = nil, false, false, nil, false
local TRIED = { atm = true, stc = true, defa = true, stacktrace = true }
local function bullHash(key)
  local hash, starts = redis.call("HGETALL", key), 0
  bullTried = false
  for i = 1, #hash, 2 do
    if hash[i] == "ats" then starts = tonumber(hash[i + 1]) or 0 end
    bullTried = bullTried or TRIED[hash[i]]
  end
  add(bullSet, "ats", whole(starts + 1))
  redis.call("HSET", key, unpack(bullSet))
  -- BullMQ takes the later value of a repeated field.
  for i = 1, #bullSet do hash[#hash + 1] = bullSet[i] end
  return hash
end
local function bullCall(command, key, ...)
  if key == bullMeta then
    bullSettings = bullSettings or redis.call(command, key, ...)
    return bullSettings
  elseif key == bullMarker and command == "ZADD" and select(2, ...) == "0" then
    bullMarked = true
    return 1
  elseif command == "ZRANGEBYSCORE" and key == bullDelayed then
    if bullNoneDelayed then return {} end
    local due = redis.call(command, key, ...)
    bullNoneDelayed = #due == 0
    return due
  elseif command == "HMSET" then
    bullSet = { ... }
    return
  elseif command == "HINCRBY" then
    return
  elseif command == "HGETALL" then
    return bullHash(key)
  end
  return redis.call(command, key, ...)
end
local bullRedis = setmetatable({ call = bullCall }, { __index = redis }) -- once
local bullPack = { unpack = function(given) return given end } -- once
local bullTakeKeys = { ${TAKE_KEYS} }
local bullTakeOpts = { token = "", lockDuration = A.lock, name = A.worker }
`;

/**
 * `bullTake(token)` takes the next job, if there is one, and returns the result of BullMQ's script. It must not be called if `bullIsEmpty()`: then
 * it would do nothing, and know of no rate limit and no delayed job. `bullWaits()`: the number of jobs that wait. `bullLeave()` ends the takes of a script.
 * A: `clock` (of the worker, ms), `lock` (duration of a lock, ms), `worker` (its name).
 */
export function bullTakeLua({ bullScript }: Bull): string {
  const take = bullScript("moveToActive");
  const [head, rest] = split(take, "\n-- Includes");
  const [functions, body] = split(
    rest,
    "\nlocal isPausedOrMaxed, rateLimitMax, rateLimitDuration =\n    getQueueMetadata(KEYS[9]",
  );
  return `${STAND_INS}
local bullTake -- once
do -- once
  local redis, cmsgpack = bullRedis, bullPack
  local rcall = redis.call
${functions}
  local function bullTakeNext(KEYS, ARGV)
${head}
${body}
  end
  bullTake = function(token)
    bullTakeOpts.token = token
    return bullTakeNext(bullTakeKeys, { BULL, A.clock, bullTakeOpts })
  end
end
local function bullIsEmpty()
  local empty = redis.call("EXISTS", ${["wait", "prioritized", "delayed", "pc", "limiter"].map((name) => at(name as "meta")).join(", ")}) == 0
  if empty then bullMarked = false end
  return empty
end
local function bullWaits() return redis.call("LLEN", ${at("wait")}) + redis.call("ZCARD", ${at("prioritized")}) end
local function bullLeave()
  if bullMarked and redis.call("EXISTS", ${at("wait")}, ${at("prioritized")}) > 0 then redis.call("ZADD", bullMarker, 0, "0") end
end`;
}

function split(text: string, cut: string): [before: string, from: string] {
  const found = text.indexOf(cut);
  if (found < 0)
    throw new Error("BullMQ has changed a script: bull-turn.ts was written for another version.");
  return [text.slice(0, found), text.slice(found)];
}
