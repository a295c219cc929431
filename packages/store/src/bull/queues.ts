import type { TaskName } from "@carillon/core";
import { localName, shardOf } from "@carillon/core/internal";
import { Cluster, type Redis } from "ioredis";
import type { NamespaceKeys } from "../keys.js";
import type { Link } from "../redis/link.js";
import { failsForAll } from "../redis/redis-error.js";
import { BULL, BULL_PAUSE } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";
import { bullMeta, bullPauseKeys, bullStateKeys, bullWorkerName } from "./bull-keys.js";

/** Name of whoever paused a queue, time (UTC ms) and reason; empty if it was paused by BullMQ itself, which records nothing. */
export interface QueuePause {
  readonly at?: number;
  readonly by?: string;
  readonly note?: string;
}

/** Waiting and active jobs of a queue, and whether workers may take them. */
export interface QueueState {
  /** Undefined: it is not paused. */
  readonly paused: QueuePause | undefined;
  /** Jobs that a worker could take, if the queue is not paused. */
  readonly waiting: number;
  /** Jobs that workers hold. */
  readonly active: number;
  /** How long the job that has waited longest does so, in ms: since it was enqueued, or its last attempt began. Undefined: none waits. */
  readonly oldestWaitingMs: number | undefined;
}

type StateAnswer = [paused: string, about: string, waiting: number, active: number, oldest: string];

const READ_QUEUE = script("read-queue", {
  keys: ["meta", "wait", "paused", "prioritized", "active"],
  uses: [BULL],
  answer: answers<StateAnswer>(),
});

const PAUSE_QUEUE = script("pause-queue", {
  keys: ["meta", "bull[]"],
  args: ["by", "note"],
  uses: [BULL, BULL_PAUSE],
  answer: answers<0 | 1>(),
});

const RESUME_QUEUE = script("resume-queue", {
  keys: ["meta", "paused", "bull[]"],
  uses: [BULL, BULL_PAUSE],
  answer: answers<number>(),
});

/** On a server with more connections workers are not counted: `CLIENT LIST` would hold it for more than some ms. */
const MOST_CONNECTIONS = 2_000;

/** BullMQ's queues: whether they are paused, what waits in them, and who works them. */
export class QueueRepository {
  readonly #link: Link;
  readonly #namespace: string;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;

  constructor(link: Link, namespace: string, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#namespace = namespace;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /** The state of a queue. Undefined if its keys hold what BullMQ has not written. */
  async state(queue: string): Promise<QueueState | undefined> {
    const { bull } = this.#keys.queue(queue);
    try {
      return decode(await this.#scripts.run(READ_QUEUE, bullStateKeys(bull)));
    } catch (error) {
      if (failsForAll(error)) throw error;
      return undefined;
    }
  }

  /**
   * How many BullMQ workers are connected, plain ones included, by queue: one `CLIENT LIST` (of each master) for all queues. Undefined if
   * Redis does not allow it, or has too many connections to list them.
   */
  async workers(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> {
    const counts = new Map(queues.map((queue) => [queue, 0]));
    const queueOf = new Map(queues.map((queue) => [bullWorkerName(this.#namespace, queue), queue]));
    const lists = await this.#link.ask(listsOfConnections).catch(() => undefined);
    if (!lists) return undefined;
    for (const names of lists) {
      const here = new Map<string, number>();
      for (const name of names) {
        const queue = queueOf.get(name.split(":w:")[0] as string);
        if (queue !== undefined) here.set(queue, (here.get(queue) ?? 0) + 1);
      }
      // A worker of a cluster may have connections to several masters.
      for (const [queue, count] of here) counts.set(queue, Math.max(count, counts.get(queue) ?? 0));
    }
    return counts;
  }

  /** How many runs an owner may have open in a queue, by owner; `*`: any other owner. */
  async limits(queue: string): Promise<Record<string, number>> {
    const { limits } = this.#keys.queue(queue);
    const stored = await this.#link.ask((client) => client.hgetall(limits));
    return Object.fromEntries(Object.entries(stored).map(([owner, runs]) => [owner, Number(runs)]));
  }

  /** @param runs undefined: no limit @returns whether that changed anything */
  async setLimit(queue: string, owner: string, runs: number | undefined): Promise<boolean> {
    const { limits } = this.#keys.queue(queue);
    return this.#link.ask(async (client) => {
      if (runs === undefined) return (await client.hdel(limits, owner)) > 0;
      const before = await client.hget(limits, owner);
      await client.hset(limits, owner, runs);
      return before !== String(runs);
    });
  }

  /** How many places a task's owner holds, and whether the task waits for one. */
  async place({ queue, owner, id }: TaskName): Promise<{ held: number; waits: boolean }> {
    const keys = this.#keys.queue(queue);
    const local = localName({ owner, id });
    return this.#link.ask(async (client) => {
      const [held, score] = await Promise.all([
        client.zcard(keys.places(owner)),
        client.zscore(keys.waiting(owner), `${shardOf(local)} ${local}`),
      ]);
      return { held, waits: score !== null };
    });
  }

  /** Returns false if it is paused already: who and note stay. */
  async pause(queue: string, by: string, note: string): Promise<boolean> {
    const { bull } = this.#keys.queue(queue);
    const keys = { meta: bullMeta(bull), bull: bullPauseKeys(bull, "pause") };
    return (await this.#scripts.run(PAUSE_QUEUE, keys, { by, note })) === 1;
  }

  /** Returns false if it was not paused. */
  async resume(queue: string): Promise<boolean> {
    const { bull } = this.#keys.queue(queue);
    const { meta, paused } = bullStateKeys(bull);
    const keys = { meta, paused, bull: bullPauseKeys(bull, "resume") };
    for (let changed = false; ; changed = true) {
      const left = await this.#scripts.run(RESUME_QUEUE, keys);
      if (left <= 0) return changed || left === 0;
    }
  }
}

/** How many jobs wait for a worker, priorities apart, and since when the oldest one does, UTC ms. */
export async function waitingJobs(
  client: Redis | Cluster,
  bull: string,
): Promise<{ waiting: number; since: number }> {
  const { wait } = bullStateKeys(bull);
  const [waiting, oldest] = await Promise.all([client.llen(wait), client.lindex(wait, -1)]);
  const since = oldest === null ? null : await client.hget(bull + oldest, "timestamp");
  return since === null ? { waiting: 0, since: 0 } : { waiting, since: Number(since) };
}

function decode([paused, about, waiting, active, oldest]: StateAnswer): QueueState {
  return {
    paused: paused === "" ? undefined : readPause(about),
    waiting,
    active,
    oldestWaitingMs: oldest === "" ? undefined : Number(oldest),
  };
}

/** Empty if nothing is stored, or something that is not ours. */
function readPause(text: string): QueuePause {
  try {
    const { at, by, note } = JSON.parse(text) as Record<string, unknown>;
    return {
      ...(typeof at === "number" ? { at } : {}),
      ...(typeof by === "string" ? { by } : {}),
      ...(typeof note === "string" ? { note } : {}),
    };
  } catch {
    return {};
  }
}

/** The names of a server's connections, or of each master's. Undefined: there are too many. */
async function listsOfConnections(client: Redis | Cluster): Promise<string[][] | undefined> {
  const servers = client instanceof Cluster ? client.nodes("master") : [client];
  const lists = await Promise.all(servers.map(namesOfConnections));
  return lists.every((list) => list !== undefined) ? lists : undefined;
}

async function namesOfConnections(server: Redis): Promise<string[] | undefined> {
  const [, count] = /^connected_clients:(\d+)/m.exec(await server.info("clients")) ?? [];
  if (Number(count) > MOST_CONNECTIONS) return undefined;
  const list = String(await server.client("LIST"));
  return Array.from(list.matchAll(/ name=(\S+)/g), ([, name]) => name as string);
}
