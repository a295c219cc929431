import type { TaskName } from "@carillon/core";
import {
  grouped,
  localName,
  type PauseFacts,
  type QueueLimit,
  runOfJob,
  shardOf,
} from "@carillon/core/internal";
import { Cluster, type Redis } from "ioredis";
import { ONCE_ARGS } from "../marks.js";
import { failsForAll } from "../redis/redis-error.js";
import { type Parts, Repository } from "../repository.js";
import { FACTS } from "../script/facts.js";
import { BULL, BULL_PAUSE, ONCE } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import {
  bullDelayed,
  bullHeldKeys,
  bullMeta,
  bullPauseKeys,
  bullStateKeys,
  bullWorkerName,
} from "./bull-keys.js";

/** A queue's pause; empty if BullMQ itself paused it, which records nothing. */
export type QueuePause = PauseFacts;

/** Waiting and active jobs of a queue, and whether workers may take them. */
export interface QueueState {
  /** Undefined: the queue is not paused. */
  readonly paused: QueuePause | undefined;
  /** BullMQ's own limits of the queue, and the one that holds jobs back now. Undefined: there are none. */
  readonly limit: QueueLimit | undefined;
  /** Jobs that a worker could take, if the queue is not paused. */
  readonly waiting: number;
  /** Jobs that workers hold. */
  readonly active: number;
  /**
   * Age of the job that has waited longest, in ms: since it was enqueued, or since its last attempt began. Undefined:
   * none waits.
   */
  readonly oldestWaitingMs: number | undefined;
}

type StateAnswer = [
  paused: string,
  about: string,
  waiting: number,
  active: number,
  oldest: string,
  runs: string,
  rate: string,
  period: string,
  holds: "runs" | "rate" | "",
];

const READ_QUEUE = script("read-queue", {
  once: "reads",
  keys: ["meta", "wait", "paused", "prioritized", "active", "limiter"],
  uses: [BULL],
  answer: answers<StateAnswer>(),
});

const PAUSE_QUEUE = script("pause-queue", {
  once: "mark",
  keys: ["meta", "marks", "bull[]"],
  args: [...ONCE_ARGS, "by", "note"],
  uses: [BULL, BULL_PAUSE, ONCE],
  answer: answers<"OK" | "UNCHANGED" | "DONE" | "STALE">(),
});

const RESUME_QUEUE = script("resume-queue", {
  once: "mark",
  keys: ["meta", "paused", "marks", "bull[]"],
  args: ONCE_ARGS,
  uses: [BULL, BULL_PAUSE, ONCE],
  answer: answers<number | "DONE" | "STALE">(),
});

/** Subject of the marks of pauses and resumes. */
const PAUSED = "paused";

/** On a server with more connections workers are not counted: `CLIENT LIST` would hold it for more than some ms. */
const MOST_CONNECTIONS = 2_000;

/** BullMQ's queues: whether they are paused, what waits in them, and who works them. */
export class QueueRepository extends Repository {
  readonly #namespace: string;

  constructor(parts: Parts, namespace: string) {
    super(parts);
    this.#namespace = namespace;
  }

  /** The state of a queue. Undefined if its keys hold foreign data. */
  async state(queue: string): Promise<QueueState | undefined> {
    const { bull } = this.keys.queue(queue);
    try {
      return decode(await this.scripts.run(READ_QUEUE, bullStateKeys(bull)));
    } catch (error) {
      if (failsForAll(error)) throw error;
      return undefined;
    }
  }

  /**
   * Number of connected BullMQ workers, plain ones included, by queue: one `CLIENT LIST` (of each master) for all
   * queues. Undefined if Redis does not allow it, or has too many connections to list them.
   */
  async workers(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> {
    const connections = await this.connections();
    return connections && new Map(queues.map((queue) => [queue, connections.workers(queue)]));
  }

  /** The connections of BullMQ workers, to count them for any queue; undefined as with `workers`. */
  async connections(): Promise<WorkerConnections | undefined> {
    const lists = await this.link.ask(listsOfConnections).catch(() => undefined);
    return lists && new WorkerConnections(this.#namespace, lists);
  }

  /**
   * Ids of the runs whose jobs workers hold, or whose items are not done, from the oldest `most` jobs of each kind.
   * Includes ids that belong to no run.
   */
  async held(queue: string, most: number): Promise<string[]> {
    const { bull } = this.keys.queue(queue);
    const { active, parents } = bullHeldKeys(bull);
    const found = await this.link.ask((client) =>
      Promise.all([client.lrange(active, -most, -1), client.zrange(parents, 0, String(most - 1))]),
    );
    return [...new Set(found.flat().map(runOfJob))];
  }

  /** Ids of the runs whose jobs wait for a time, the first `most`. Empty if its keys hold foreign data. */
  async delayed(queue: string, most: number): Promise<string[]> {
    const key = bullDelayed(this.keys.queue(queue).bull);
    try {
      return await this.link.ask((client) => client.zrange(key, 0, String(most - 1)));
    } catch (error) {
      if (failsForAll(error)) throw error;
      return [];
    }
  }

  /**
   * Ids of the runs whose jobs wait for a worker, from the next and the newest `most` jobs of each kind: the items of a
   * fan-out may stand between. Includes ids that belong to no run. Empty if its keys hold foreign data.
   */
  async waiting(queue: string, most: number): Promise<string[]> {
    const { wait, paused, prioritized } = bullStateKeys(this.keys.queue(queue).bull);
    try {
      const found = await this.link.ask((client) =>
        Promise.all([
          client.lrange(wait, -most, -1),
          client.lrange(wait, 0, most - 1),
          client.lrange(paused, -most, -1),
          client.zrange(prioritized, 0, String(most - 1)),
          client.zrange(prioritized, -most, "-1"),
        ]),
      );
      return [...new Set(found.flat())];
    } catch (error) {
      if (failsForAll(error)) throw error;
      return [];
    }
  }

  /** Limits of open runs in a queue, by owner; `*`: every other owner. */
  async limits(queue: string): Promise<Record<string, number>> {
    const { limits } = this.keys.queue(queue);
    const stored = await this.link.ask((client) => client.hgetall(limits));
    return Object.fromEntries(Object.entries(stored).map(([owner, runs]) => [owner, Number(runs)]));
  }

  /**
   * @param runs undefined: no limit
   * @returns whether this changed anything
   */
  async setLimit(queue: string, owner: string, runs: number | undefined): Promise<boolean> {
    return this.settings.field(this.keys.queue(queue), "limits", owner, runs);
  }

  /** Number of places that a task's owner holds, whether the task waits for one, and the owner's limit, if there is one. */
  async place({
    queue,
    owner,
    id,
  }: TaskName): Promise<{ held: number; waits: boolean; limit: number | undefined }> {
    const keys = this.keys.queue(queue);
    const local = localName({ owner, id });
    return this.link.ask(async (client) => {
      const [held, score, [own, any]] = await Promise.all([
        client.zcard(keys.places(owner)),
        client.zscore(keys.waiting(owner), `${shardOf(local)} ${local}`),
        client.hmget(keys.limits, owner, FACTS.anyOwner),
      ]);
      const limit = own ?? any ?? undefined;
      return { held, waits: score !== null, limit: limit === undefined ? undefined : Number(limit) };
    });
  }

  /** Returns false if it is paused already: author and note stay. */
  async pause(queue: string, by: string, note: string): Promise<boolean> {
    const { bull, marks } = this.keys.queue(queue);
    const keys = { meta: bullMeta(bull), bull: bullPauseKeys(bull, "pause"), marks };
    const word = await this.marks.change(marks, PAUSED, (once) =>
      this.scripts.run(PAUSE_QUEUE, keys, { ...once, by, note }),
    );
    return word !== "UNCHANGED";
  }

  /** Returns false if it was not paused. */
  async resume(queue: string): Promise<boolean> {
    const { bull, marks } = this.keys.queue(queue);
    const { meta, paused } = bullStateKeys(bull);
    const keys = { meta, paused, bull: bullPauseKeys(bull, "resume"), marks };
    for (let changed = false; ; changed = true) {
      const left = await this.marks.change(marks, PAUSED, (once) =>
        this.scripts.run(RESUME_QUEUE, keys, once),
      );
      // Its answer was lost, and may have said that jobs are left.
      if (left === "DONE") continue;
      if (left <= 0) return changed || left === 0;
    }
  }
}

/** The BullMQ workers that were connected when `connections` was called. */
export class WorkerConnections {
  /** For each master, the names of connections by queue, as BullMQ names it: `<queue>:w:<worker>`, or the queue alone. */
  readonly #lists: readonly ReadonlyMap<string, readonly string[]>[];
  readonly #namespace: string;

  constructor(namespace: string, lists: readonly (readonly string[])[]) {
    this.#namespace = namespace;
    this.#lists = lists.map((names) => grouped(names, (name) => name.split(":w:", 1)[0] ?? ""));
  }

  /** @param besides names of workers that do not count */
  workers(queue: string, besides: ReadonlySet<string> = new Set()): number {
    const name = bullWorkerName(this.#namespace, queue);
    const counts = this.#lists.map(
      (list) => (list.get(name) ?? []).filter((one) => !besides.has(one.slice(`${name}:w:`.length))).length,
    );
    // A worker of a cluster may have connections to several masters.
    return Math.max(0, ...counts);
  }
}

function decode([paused, about, waiting, active, oldest, ...limit]: StateAnswer): QueueState {
  return {
    paused: paused === "" ? undefined : readPause(about),
    limit: decodeLimit(...limit),
    waiting,
    active,
    oldestWaitingMs: oldest === "" ? undefined : Number(oldest),
  };
}

function decodeLimit(
  runs: string,
  rate: string,
  period: string,
  holds: "runs" | "rate" | "",
): QueueLimit | undefined {
  const limit = {
    ...(Number(runs) > 0 && { runs: Number(runs) }),
    ...(Number(rate) > 0 && Number(period) > 0 && { rate: { jobs: Number(rate), ms: Number(period) } }),
    ...(holds !== "" && { holds }),
  };
  return Object.keys(limit).length > 0 ? limit : undefined;
}

/** Empty if nothing is stored, or foreign data. */
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
