import { parseDuration, type RetryPolicy, type TaskDefinition } from "@carillon/core";
import { Job, type JobsOptions, Queue } from "bullmq";
import { type Cluster, Redis } from "ioredis";
import { bullPrefix } from "./keys.js";

/**
 * The only file that knows BullMQ's internals. It borrows two things from the pinned version:
 *
 * - the text of its `add…Job` and `removeJob` scripts, wrapped as Lua functions so that ours can call them;
 * - the packed arguments that its own `Job.addJob` would send, caught by handing it a recorder for a client.
 *
 * `test/bullmq-contract.test.ts` fails when a new version changes either.
 */

export interface PackedJob {
  readonly prioritized: boolean;
  /** Keys that BullMQ's script would get, in its order. */
  readonly keys: readonly string[];
  /** msgpack: prefix, id, name, timestamp, … */
  readonly args: Buffer;
  /** msgpack: job options. */
  readonly opts: Buffer;
}

/** BullMQ's keys that the claim declares, in the order in which `lib/bull.lua` expects them. */
const BULL_KEYS = [
  "wait",
  "paused",
  "meta",
  "id",
  "completed",
  "delayed",
  "active",
  "events",
  "marker",
  "prioritized",
  "pc",
] as const;

export function bullKeys(bull: string): string[] {
  return BULL_KEYS.map((key) => bull + key);
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

const scripts = new Map<string, string>();

/** BullMQ's adds as Lua functions, and what hands each its keys. */
export function bullAddLua(): string {
  return [
    wrap("bullAddStandard", "addStandardJob"),
    wrap("bullAddPrioritized", "addPrioritizedJob"),
    `local function bullStandardKeys(K) return {${pick(STANDARD_KEYS)}} end`,
    `local function bullPrioritizedKeys(K) return {${pick(PRIORITIZED_KEYS)}} end`,
  ].join("\n");
}

/** BullMQ's remove as a Lua function. */
export function bullRemoveLua(): string {
  return wrap("bullRemoveJob", "removeJob");
}

function wrap(name: string, command: string): string {
  return `local function ${name}(KEYS, ARGV)\n${bullScript(command)}\nend`;
}

function pick(names: readonly string[]): string {
  return names.map((key) => `K[${BULL_KEYS.indexOf(key as (typeof BULL_KEYS)[number]) + 1}]`).join(",");
}

/** The text of one of BullMQ's scripts, as this version registers it on a connection. */
export function bullScript(command: string): string {
  if (scripts.size === 0) {
    const recorder = recordingQueue("{none}", "none");
    const { scriptsSet } = recorder.client as unknown as { scriptsSet: Record<string, { lua: string }> };
    for (const [key, { lua }] of Object.entries(scriptsSet)) scripts.set(key.split(":")[0] as string, lua);
  }
  const text = scripts.get(command);
  if (text === undefined) throw new Error(`BullMQ has no script ${command}: bullmq.ts fits another version.`);
  return text;
}

interface Recorder {
  queue: Queue;
  client: Redis;
}

let unopened: Redis | undefined;

/** One for all queues: each would hold BullMQ's scripts anew, and a namespace may have thousands of queues. */
function unopenedClient(): Redis {
  if (!unopened) {
    unopened = new Redis({ lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null });
    unopened.setMaxListeners(0);
    unopened.on("error", () => {});
  }
  return unopened;
}

/** A queue on a connection that is never opened: BullMQ registers its scripts and builds keys without a server. */
function recordingQueue(prefix: string, name: string): Recorder {
  const client = unopenedClient();
  const queue = new Queue(name, {
    connection: client,
    prefix,
    skipMetasUpdate: true,
    skipWaitingForReady: true,
    skipVersionCheck: true,
  });
  queue.on("error", () => {});
  return { queue, client };
}

/** Packs jobs of one queue as BullMQ itself would send them. */
export class JobPacker {
  readonly #queue: Queue;
  readonly #prefix: string;

  constructor(namespace: string, queue: string) {
    this.#prefix = bullPrefix(namespace, queue);
    this.#queue = recordingQueue(this.#prefix, queue).queue;
  }

  /**
   * The job without its data: that is JSON text already, and the script completes it. The id is `new Job`'s fifth
   * argument (in the options it would be ignored).
   */
  pack(id: string, name: string, options: JobsOptions): PackedJob {
    const job = new Job(this.#queue, name, null, options, id);
    let recorded: { command: string; args: (string | Buffer)[] } | undefined;
    const recorder = {
      runCommand(command: string, args: (string | Buffer)[]) {
        recorded = { command, args };
        return id;
      },
    };
    // Runs up to the recorder without yielding; what it resolves to is our own id again.
    void job.addJob(recorder as unknown as Parameters<typeof job.addJob>[0]);
    if (!recorded) throw new Error("BullMQ did not reach the recorder: bullmq.ts fits another version.");
    const [args, , opts] = recorded.args.slice(-3) as [Buffer, string, Buffer];
    return {
      prioritized: recorded.command.startsWith("addPrioritizedJob:"),
      keys: recorded.args.slice(0, -3) as string[],
      args,
      opts,
    };
  }
}

/** Takes away all that BullMQ keeps of a queue, jobs that are being worked included. */
export async function obliterate(client: Redis | Cluster, namespace: string, queue: string): Promise<void> {
  const bull = new Queue(queue, { connection: client, prefix: bullPrefix(namespace, queue) });
  bull.on("error", () => {});
  try {
    await bull.obliterate({ force: true });
  } finally {
    await bull.close();
  }
}

/** Options of every job: they outlive their end until the reconciler has settled them (job options beat the worker's). */
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
 * A kind that BullMQ itself knows, for plain workers: they take a linear wait for a fixed one, and cap none. Our worker goes by
 * `kind` and `max`.
 */
function backoffOf({ backoff, delay, max }: RetryPolicy): NonNullable<JobsOptions["backoff"]> {
  const type = backoff === "linear" ? "fixed" : backoff;
  const wait = { type, delay: parseDuration(delay), kind: backoff, max: parseDuration(max) };
  return wait as NonNullable<JobsOptions["backoff"]>;
}
