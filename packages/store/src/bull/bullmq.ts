import { parseDuration, type RetryPolicy, type TaskDefinition } from "@carillon/core";
import { Job, type JobsOptions, Queue } from "bullmq";
import { type Cluster, Redis } from "ioredis";
import { unpack } from "msgpackr";
import { bullPrefix } from "../keys.js";
import { BULL_KEYS, bullChildren } from "./bull-keys.js";

export {
  DelayedError,
  Job,
  Queue,
  RATE_LIMIT_ERROR,
  UnrecoverableError,
  WaitingChildrenError,
  WaitingError,
} from "bullmq";

/**
 * This folder is the only place that knows BullMQ's internals. Other keys and fields of BullMQ that we read are in bull-keys.ts and
 * lib/bull.lua, members of BullMQ's worker in patient-worker.ts. This file borrows two things from the pinned version:
 *
 * - the text of its `add…Job`, `removeJob`, `promote` and `pause` scripts, wrapped as Lua functions so that ours can call them;
 * - the packed arguments that its own `Job.addJob` would send, caught by handing it a recorder for a client.
 *
 * The adds run unmodified, with stand-ins for what they call (`STAND_INS`): what one script of ours would read, set or unpack
 * again for each of its jobs is done once.
 *
 * `test/bullmq-contract.test.ts` fails when a new version changes any of it.
 */

/** Parts shared by jobs of one type with the same options: everything but id and data. */
export interface JobTemplate {
  readonly prioritized: boolean;
  /** Keys that BullMQ's script would get, in its order. */
  readonly keys: readonly string[];
  /** Prefix, placeholder for the id, name, timestamp; of an item also its parent's keys. All further arguments are empty. */
  readonly args: readonly unknown[];
  /** The job's options, as BullMQ sends them. */
  readonly opts: unknown;
}

/** Key orders of the two adds, as positions in `BULL_KEYS`; the contract test compares them with a recording. */
const STANDARD_KEYS = ["wait", "paused", "meta", "id", "completed", "delayed", "active", "events", "marker"];
const PRIORITIZED_KEYS = [
  "marker",
  "meta",
  "id",
  "prioritized",
  "delayed",
  "completed",
  "active",
  "events",
  "pc",
];

/** Index of the job's id in the arguments of an add, counted from 1 as in Lua; the number of arguments in use, without and with a parent. */
const ID_ARGUMENT = 2;
const TIMESTAMP_ARGUMENT = 4;
const [OWN_ARGUMENTS, WITH_PARENT] = [4, 7];

const scripts = new Map<string, string>();

/**
 * Nobody can change a queue while a script runs: its settings (`meta`) are read once, its marker is set once, jobs are counted
 * together, and ids go to the waiting list together. Arguments and options come unpacked, from a template; each template's
 * options are encoded once. Whether a job has the id already is checked before the add (`lib/enqueue.lua`).
 */
const STAND_INS = `
local bullRead, bullMarked, bullCounted, bullEncoded, bullWaiting = {}, nil, 0, {}, {}
local function bullCall(command, key, ...)
  if key == KEYS_META then
    if command ~= "HGET" and command ~= "HMGET" then
      bullRead = {}
    else
      local first = ...
      local known = bullRead[first]
      if known == nil then
        known = redis.call(command, key, ...)
        bullRead[first] = known
      end
      return known
    end
  elseif key == KEYS_MARKER then
    -- An add only calls \`ZADD marker 0 "0"\` here.
    if not bullMarked then bullMarked = redis.call(command, key, ...) end
    return bullMarked
  elseif key == KEYS_ID and command == "INCR" then
    -- It numbers jobs that have no id; ours have.
    bullCounted = bullCounted + 1
    return bullCounted
  elseif command == "LPUSH" then
    local ids = bullWaiting[key]
    if ids then
      ids[#ids + 1] = ...
    else
      -- Writes the first one alone: it fails if the key has another type, and then the rest need not be tried.
      redis.call(command, key, ...)
      bullWaiting[key] = {}
    end
    return 0
  elseif command == "EXISTS" and key == bullJob then
    return 0
  end
  return redis.call(command, key, ...)
end
-- Runs when all are added. The jobs exist by now, so this must not fail.
local function bullFinish()
  if bullCounted > 0 then redis.pcall("INCRBY", KEYS_ID, bullCounted) end
  for key, ids in pairs(bullWaiting) do
    if #ids > 0 then redis.pcall("LPUSH", key, unpack(ids)) end
  end
end
local bullRedis = setmetatable({ call = bullCall }, { __index = redis }) -- once
local bullPack = { unpack = function(unpacked) return unpacked end } -- once
local function bullEncode(opts)
  local text = bullEncoded[opts]
  if not text then
    text = cjson.encode(opts)
    bullEncoded[opts] = text
  end
  return text
end
`;

/**
 * BullMQ's adds as Lua functions. `bullAdd` adds a job of a template to the queue whose keys `bullQueue` received.
 * Workers see jobs without a priority only after `bullFinish`, which is called when all are added.
 */
export function bullAddLua(): string {
  return `
local KEYS_META, KEYS_MARKER, KEYS_ID, bullJob
${STAND_INS}
local bullAddStandard, bullAddPrioritized -- once
${addFunction("bullAddStandard", "addStandardJob")}
${addFunction("bullAddPrioritized", "addPrioritizedJob")}
local bullStandardKeys, bullPrioritizedKeys
local function bullQueue(K)
  KEYS_META, KEYS_MARKER, KEYS_ID = ${pick(["meta", "marker", "id"])}
  bullStandardKeys = {${pick(STANDARD_KEYS)}}
  bullPrioritizedKeys = {${pick(PRIORITIZED_KEYS)}}
end
-- Templates by number, from JSON; their jobs were made now.
local function bullTemplates(text, now)
  local templates, stamp = cjson.decode(text), string.format("%d", now)
  for _, template in pairs(templates) do
    template[2][${TIMESTAMP_ARGUMENT}] = stamp
    if template[3].timestamp then template[3].timestamp = now end
  end
  return templates
end
local function bullAdd(template, id, data, key, trace)
  bullJob = key
  local prioritized, args, opts = unpack(template)
  if trace then
    -- BullMQ's own field for it, as bullmq-otel reads it.
    local traced = { tm = cjson.encode({ traceparent = trace }) }
    for name, value in pairs(opts) do traced[name] = value end
    opts = traced
  end
  args[${ID_ARGUMENT}] = id
  local ARGV = { args, data, opts }
  if prioritized then return bullAddPrioritized(bullPrioritizedKeys, ARGV) end
  return bullAddStandard(bullStandardKeys, ARGV)
end`;
}

/**
 * Between these marks the script defines functions that do not depend on the job: they are defined once, not for each
 * job.
 */
const FUNCTIONS_BEGIN = "\n-- Includes";
const FUNCTIONS_END = "\nif parentKey ~= nil then";

function addFunction(name: string, command: string): string {
  const text = bullScript(command);
  const [begin, end] = [text.indexOf(FUNCTIONS_BEGIN), text.indexOf(FUNCTIONS_END)];
  if (begin < 0 || end < begin)
    throw new Error(`BullMQ has changed its script ${command}: bullmq.ts was written for another version.`);
  return `do -- once
  local redis, cmsgpack, cjson = bullRedis, bullPack, { encode = bullEncode }
  local rcall = redis.call
${text.slice(begin, end)}
  function ${name}(KEYS, ARGV)
${text.slice(0, begin)}
${text.slice(end)}
  end
end`;
}

/**
 * BullMQ's remove as a Lua function. BullMQ searches a list for an id from its newest end. Ids are unique and we remove
 * old ones, so this searches from the oldest end, which is fast however many jobs wait.
 */
export function bullRemoveLua(): string {
  return `local bullRemoveJob -- once
do -- once
  local redis = setmetatable({
    call = function(command, key, ...)
      local count, id = ...
      if command == "LREM" and count == 1 then return redis.call(command, key, -1, id) end
      return redis.call(command, key, ...)
    end,
  }, { __index = redis })
  bullRemoveJob = function(KEYS, ARGV)
${bullScript("removeJob")}
  end
end
-- Whether it was removed: a job that a worker holds is not.
local function bullRemove(id)
  return bullRemoveJob({ bullKey(id), K.repeats }, { id, "0", BULL }) == 1
end`;
}

/** Key order of the promotion; the contract test compares it with what `Job.promote` sends. */
const PROMOTE_KEYS = ["delayed", "wait", "paused", "meta", "prioritized", "active", "pc", "events", "marker"];

/** BullMQ's promotion of a delayed job as a Lua function: answers 0, or -3 if the job is not delayed. */
export function bullPromoteLua(): string {
  return `local function bullPromote(prefix, id)
  local KEYS, ARGV = {${PROMOTE_KEYS.map((key) => `prefix .. "${key}"`).join(",")}}, { prefix, id }
${bullScript("promote")}
end`;
}

/** BullMQ's pause of a queue, which also resumes it, as a Lua function. */
export function bullPauseLua(): string {
  return `local function bullPause(KEYS, ARGV)
${bullScript("pause")}
end`;
}

function pick(names: readonly string[]): string {
  return names.map((key) => `K[${BULL_KEYS.indexOf(key as (typeof BULL_KEYS)[number]) + 1}]`).join(",");
}

/** The text of one of BullMQ's scripts, as this version registers it on a connection. */
export function bullScript(command: string): string {
  if (scripts.size === 0) {
    for (const [key, { lua }] of Object.entries(registeredScripts()))
      scripts.set(key.split(":")[0] as string, lua);
  }
  const text = scripts.get(command);
  if (text === undefined)
    throw new Error(`BullMQ has no script ${command}: bullmq.ts was written for another version.`);
  return text;
}

/** BullMQ's scripts by `name:version`. */
function registeredScripts(): Record<string, { lua: string }> {
  const { connection } = recordingQueue().opts;
  return (connection as unknown as { scriptsSet: Record<string, { lua: string }> }).scriptsSet;
}

/** The version of BullMQ that this process has loaded. */
export function bullVersion(): string {
  return Object.keys(registeredScripts())[0]?.split(":")[1] ?? "unknown";
}

let recorder: Queue | undefined;

/** BullMQ's key prefix of the recorder's queue. */
const RECORDED = "{none}:none:";

/**
 * A queue on a connection that is never opened: BullMQ registers its scripts and builds keys without a server. One for
 * all: each would hold listeners and keys for as long as the process lives, and namespaces see ever new queues.
 */
function recordingQueue(): Queue {
  if (!recorder) {
    const connection = new Redis({ lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null });
    connection.on("error", () => {});
    recorder = new Queue("none", {
      connection,
      prefix: "{none}",
      skipMetasUpdate: true,
      skipWaitingForReady: true,
      skipVersionCheck: true,
    });
    recorder.on("error", () => {});
  }
  return recorder;
}

/** Packs jobs of one queue as BullMQ itself would send them. */
export class JobPacker {
  /** @param bull BullMQ's key prefix of the queue */
  constructor(private readonly bull: string) {}

  /** A job without its id and its data: the script fills those in. */
  template(name: string, options: JobsOptions): JobTemplate {
    // The id is `new Job`'s fifth argument (in the options it would be ignored).
    const job = new Job(recordingQueue(), name, null, options, "id");
    let recorded: { command: string; args: (string | Buffer)[] } | undefined;
    const recorder = {
      runCommand(command: string, args: (string | Buffer)[]) {
        recorded = { command, args };
        return "id";
      },
    };
    // Runs synchronously up to the recorder; its result is only the id.
    const { parentKey } = job;
    const parent =
      parentKey === undefined ? {} : { parentKey, parentDependenciesKey: bullChildren(parentKey).left };
    void job.addJob(recorder as unknown as Parameters<typeof job.addJob>[0], parent);
    if (!recorded)
      throw new Error("BullMQ did not reach the recorder: bullmq.ts was written for another version.");
    const [packed, , opts] = recorded.args.slice(-3) as [Buffer, string, Buffer];
    const args = unpack(packed) as unknown[];
    const own = args.findIndex((arg) => arg === null || arg === undefined);
    if (
      own !== (options.parent ? WITH_PARENT : OWN_ARGUMENTS) ||
      args.slice(own).some((arg) => arg !== null && arg !== undefined)
    ) {
      throw new Error(
        "BullMQ packs a job's arguments differently: bullmq.ts was written for another version.",
      );
    }
    return {
      prioritized: recorded.command.startsWith("addPrioritizedJob:"),
      keys: (recorded.args.slice(0, -3) as string[]).map((key) => this.#ours(key)),
      // The timestamp is text, because Redis would format a number again for each job.
      args: [
        this.#ours(args[0]),
        ...args.slice(1, own).map((arg) => (typeof arg === "number" ? String(arg) : arg)),
      ],
      opts: unpack(opts),
    };
  }

  /** A key of the recorder's queue as one of this queue. */
  #ours(key: unknown): string {
    if (typeof key !== "string" || !key.startsWith(RECORDED))
      throw new Error("BullMQ names a queue's keys differently: bullmq.ts was written for another version.");
    return this.bull + key.slice(RECORDED.length);
  }
}

/** Deletes all BullMQ data of a queue, active jobs included. */
export async function obliterate(client: Redis | Cluster, namespace: string, queue: string): Promise<void> {
  const bull = new Queue(queue, { connection: client, prefix: bullPrefix(namespace, queue) });
  bull.on("error", () => {});
  try {
    await bull.obliterate({ force: true });
  } finally {
    await bull.close();
  }
}

/**
 * Options of every job: BullMQ keeps ended jobs until the reconciler has settled them (job options override the
 * worker's).
 */
export function jobOptions(
  { priority, retry }: Pick<TaskDefinition, "priority" | "retry">,
  timestamp: number,
): JobsOptions {
  return {
    removeOnComplete: false,
    removeOnFail: false,
    timestamp,
    ...(priority > 0 ? { priority } : {}),
    ...(retry === undefined ? {} : { attempts: retry.attempts, backoff: backoffOf(retry) }),
  };
}

/**
 * Uses a kind that BullMQ knows, for plain workers: they treat a linear wait as fixed, and apply no maximum. Our worker
 * uses `kind` and `max`.
 */
function backoffOf({ backoff, delay, max }: RetryPolicy): NonNullable<JobsOptions["backoff"]> {
  const type = backoff === "linear" ? "fixed" : backoff;
  const wait = { type, delay: parseDuration(delay), kind: backoff, max: parseDuration(max) };
  return wait as NonNullable<JobsOptions["backoff"]>;
}
