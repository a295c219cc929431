import { CarillonError, type DefaultsScope, type Policies, type PoliciesInput } from "@carillon/core";
import { assertDefaultsScope, isName, parsePolicies, type Quotas, revealed } from "@carillon/core/internal";
import {
  fieldOf,
  type NodeInfo,
  readNodes,
  readSchemas,
  readWorkers,
  type TypeSchemas,
  type WorkerInfo,
  withoutReplaced,
} from "./beats.js";
import { bullIdleKeys, bullJobKeys, bullMeta } from "./bull/bull-keys.js";
import type { FreezeRepository } from "./freezes.js";
import { newToken } from "./ids.js";
import { type Parts, Repository } from "./repository.js";
import { BULL } from "./script/libraries.js";
import { answers, script } from "./script/script.js";

const MARK_QUEUE = script("mark-queue", {
  once: {
    repeats: "A mark that arrives after its end keeps the name of an empty queue, which does no harm.",
  },
  keys: ["queues", "freezes"],
  args: ["queue", "mark", "begins"],
  answer: answers<string>(),
});

const STAMP_QUEUE = script("stamp-queue", {
  once: { repeats: "An older note only lets a node do its work again." },
  keys: ["queues", "notes"],
  args: ["queue", "note"],
});

const CLEAR_QUEUE = script("clear-queue", {
  once: { repeats: "It deletes only what is left of a queue that is empty when it runs." },
  keys: [
    "tasks",
    "runs",
    "alerts",
    "incidents",
    "collected",
    "outcomes",
    "frozen",
    "held",
    "late",
    "skips",
    "meta",
    "bull[]",
    "jobs[]",
  ],
  uses: [BULL],
  answer: answers<0 | 1>(),
});

const UNREGISTER_QUEUE = script("unregister-queue", {
  once: "value",
  keys: ["queues", "pastQueues", "zones", "audits"],
  args: ["queue", "value"],
  answer: answers<0 | 1>(),
});

/** A put that has begun. */
export interface Entered {
  /** Random: a queue that was removed and registered again has another one. */
  readonly mark: string;
  /** Revision of the freezes and quotas that hold in the queue; "" there are none. */
  readonly freezes: string;
}

/**
 * The queues of a namespace, its nodes and workers, and the console's sessions that were ended. These live in another
 * cluster slot than the queues themselves, so no script can hold both: a put marks its queue before it writes and takes
 * the mark off after, and a delete takes a queue out only if its value has not moved since it saw the queue empty.
 */
export class Registry extends Repository {
  readonly #freezes: FreezeRepository;
  /** Lists of schemas that were read, by digest. */
  #schemas: ReadonlyMap<string, TypeSchemas> = new Map();

  constructor(parts: Parts, freezes: FreezeRepository) {
    super(parts);
    this.#freezes = freezes;
  }

  async queues(): Promise<string[]> {
    const names = await this.link.ask((client) => client.hkeys(this.keys.queues));
    // Names become parts of keys: an invalid name is corrupt or foreign data.
    return names.filter(isName).sort();
  }

  /** The queues, and those that were removed lately: their deleted tasks can still be put again. */
  async queuesAndPast(): Promise<string[]> {
    const past = await this.link.ask((client) => client.zrange(this.keys.pastQueues, 0, "-1"));
    return [...new Set([...(await this.queues()), ...past.filter(isName)])].sort();
  }

  async has(queue: string): Promise<boolean> {
    return (await this.link.ask((client) => client.hexists(this.keys.queues, queue))) === 1;
  }

  /** Marks that a put into the queue begins. */
  async enter(queue: string): Promise<Entered> {
    const mark = newToken();
    const revision = await this.scripts.run(MARK_QUEUE, this.keys, { queue, mark, begins: true });
    // A freeze that was put before the queue was listed does not hold in it yet.
    return { mark, freezes: revision === "" ? "" : await this.#freezes.hold(queue) };
  }

  /** The put has ended. */
  async leave(queue: string, { mark }: Entered): Promise<void> {
    await this.scripts.run(MARK_QUEUE, this.keys, { queue, mark, begins: false });
  }

  /** Does work that puts into the queue. */
  async during<T>(queue: string, work: (entered: Entered) => Promise<T>): Promise<T> {
    const entered = await this.enter(queue);
    try {
      return await work(entered);
    } finally {
      await this.leave(queue, entered);
    }
  }

  /**
   * Removes the queue from the registry if it has no Carillon data and no put is under way. BullMQ's keys are deleted too,
   * unless they hold jobs of others; user settings, such as a pause, stay.
   */
  async forgetIfEmpty(queue: string): Promise<boolean> {
    const value = await this.link.ask((client) => client.hget(this.keys.queues, queue));
    if (value === null || value.includes(" ")) return false;
    const keys = this.keys.queue(queue);
    const cleared = await this.scripts.run(CLEAR_QUEUE, {
      ...keys,
      meta: bullMeta(keys.bull),
      bull: bullIdleKeys(keys.bull),
      jobs: bullJobKeys(keys.bull),
    });
    if (cleared === 0) return false;
    return (await this.scripts.run(UNREGISTER_QUEUE, this.keys, { queue, value })) === 1;
  }

  /** The only task types that may be put; none: any may. */
  async types(): Promise<string[]> {
    return (await this.link.ask((client) => client.hkeys(this.keys.types))).sort();
  }

  /** From now on only these task types may be put; none: any. Tasks that are stored stay. */
  async setTypes(types: readonly string[]): Promise<void> {
    await this.settings.change(this.keys, "types", async (client, key) => {
      const before = await client.hkeys(key);
      return {
        set: types.flatMap((type) => (before.includes(type) ? [] : [type, ""])),
        drop: before.filter((type) => !types.includes(type)),
      };
    });
  }

  /** Rules of the namespace for new definitions, read in one trip: the only types (none: any), default policies, and quotas. */
  async rules(): Promise<{ types: string[]; defaults: Map<DefaultsScope, Policies>; quotas: Quotas }> {
    const [types, defaults, quotas] = await Promise.all([
      this.types(),
      this.defaults(),
      this.#freezes.quotas(),
    ]);
    return { types, defaults, quotas };
  }

  /** The policies of the namespace for tasks that do not have them. Corrupt ones are left out. */
  async defaults(): Promise<Map<DefaultsScope, Policies>> {
    const stored = await this.link.ask((client) => client.hgetall(this.keys.defaults));
    const defaults = new Map<DefaultsScope, Policies>();
    for (const [scope, text] of Object.entries(stored)) {
      try {
        defaults.set(assertDefaultsScope(scope), parsePolicies(JSON.parse(text) as PoliciesInput));
      } catch {}
    }
    return defaults;
  }

  /** @param policies undefined: none @returns whether there were other ones */
  async setDefaults(scope: DefaultsScope, policies: Policies | undefined): Promise<boolean> {
    return this.settings.field(this.keys, "defaults", scope, policies && JSON.stringify(revealed(policies)));
  }

  /** By queue: the version of the time zone data that its tasks were planned with. */
  async zones(): Promise<Map<string, string>> {
    return new Map(Object.entries(await this.link.ask((client) => client.hgetall(this.keys.zones))));
  }

  /** By queue: when its indexes were last compared with its definitions, UTC ms. */
  async audits(): Promise<Map<string, number>> {
    const stored = await this.link.ask((client) => client.hgetall(this.keys.audits));
    return new Map(Object.entries(stored).map(([queue, at]) => [queue, Number(at)]));
  }

  async setAudit(queue: string, at: number): Promise<void> {
    await this.#stamp(this.keys.audits, queue, at);
  }

  async setZone(queue: string, version: string): Promise<void> {
    await this.#stamp(this.keys.zones, queue, version);
  }

  /** Does nothing if the queue has left the registry. */
  async #stamp(key: string, queue: string, value: string | number): Promise<void> {
    const { queues } = this.keys;
    await this.scripts.run(STAMP_QUEUE, { queues, notes: key }, { queue, note: value });
  }

  async beat(node: NodeInfo): Promise<void> {
    await this.link.ask((client) => client.hset(this.keys.nodes, fieldOf(node), JSON.stringify(node)));
  }

  /**
   * Counts a heartbeat, and keeps the latest time of Redis that a node saw: the traces of one history of Redis.
   *
   * @returns the number of heartbeats in this history, and the latest time before this one
   */
  async countBeat(clock: number): Promise<{ beats: number; before: number | undefined }> {
    const key = this.keys.history;
    const [before, beats] = await this.link.ask((client) =>
      Promise.all([
        client.zscore(key, "clock"),
        client.zincrby(key, 1, "beats"),
        client.zadd(key, "GT", clock, "clock"),
      ]),
    );
    return { beats: Number(beats), before: before === null ? undefined : Number(before) };
  }

  /** The latest time of Redis that a node saw, UTC ms. Undefined: no node has been here. */
  async latestClock(): Promise<number | undefined> {
    const score = await this.link.ask((client) => client.zscore(this.keys.history, "clock"));
    return score === null ? undefined : Number(score);
  }

  async nodes(): Promise<NodeInfo[]> {
    return withoutReplaced(await this.listedNodes());
  }

  /** All nodes on the list, also those that were started again since they ended. */
  async listedNodes(): Promise<NodeInfo[]> {
    return readNodes(await this.link.ask((client) => client.hgetall(this.keys.nodes)));
  }

  /** @param schemas JSON Schemas of its types, as JSON; written if the worker was not on the list, and with `first` */
  async beatWorker(worker: WorkerInfo, schemas = "", first = false): Promise<void> {
    const { id } = worker;
    const added = await this.link.ask((client) => client.hset(this.keys.workers, id, JSON.stringify(worker)));
    if (schemas !== "" && (added === 1 || first))
      await this.link.ask((client) => client.hset(this.keys.schemas, id, schemas));
  }

  /** Lists of JSON Schemas that these workers publish, by digest. Leaves out corrupt and foreign data. */
  async schemasOf(workers: readonly WorkerInfo[]): Promise<ReadonlyMap<string, TypeSchemas>> {
    const holders = new Map(workers.flatMap(({ id, schemas }) => (schemas ? [[schemas, id] as const] : [])));
    const unread = [...holders].filter(([digest]) => !this.#schemas.has(digest));
    const ids = unread.map(([, id]) => id);
    const texts =
      ids.length > 0 ? await this.link.ask((client) => client.hmget(this.keys.schemas, ...ids)) : [];
    const read = new Map(unread.map(([digest], i) => [digest, readSchemas(texts[i])]));
    const known = [...holders.keys()].flatMap((digest) => {
      const schemas = this.#schemas.get(digest) ?? read.get(digest);
      return schemas ? [[digest, schemas] as const] : [];
    });
    this.#schemas = new Map(known);
    return this.#schemas;
  }

  async workers(): Promise<WorkerInfo[]> {
    const all = await this.link.ask((client) => client.hgetall(this.keys.workers));
    return readWorkers(all);
  }

  async removeWorker(id: string): Promise<void> {
    await this.link.ask((client) =>
      Promise.all([client.hdel(this.keys.workers, id), client.hdel(this.keys.schemas, id)]),
    );
  }

  /** Tests whether Redis accepts writes, without writing anything. @throws coded Redis errors */
  async assertWritable(): Promise<void> {
    // Redis refuses it as it refuses any write; XX adds nothing.
    await this.link.ask((client) => client.zadd(this.keys.probe, "XX", 0, "-"));
  }

  /** Makes all consoles refuse this session. @param ms how long to remember that */
  async endSession(id: string, ms: number): Promise<void> {
    await this.link.ask((client) => client.set(this.keys.ended(id), "", "PX", ms));
  }

  async sessionHasEnded(id: string): Promise<boolean> {
    return (await this.link.ask((client) => client.exists(this.keys.ended(id)))) === 1;
  }

  /** @param instance default: each node with this id */
  async removeNode(id: string, instance?: string): Promise<void> {
    const { nodes } = this.keys;
    await this.link.ask(async (client) => {
      const fields =
        instance === undefined
          ? (await client.hkeys(nodes)).filter((field) => field.split(" ")[0] === id)
          : [fieldOf({ id, instance })];
      if (fields.length > 0) await client.hdel(nodes, ...fields);
    });
  }
}

/** @param known the types of the namespace; none: any @throws `UNKNOWN_TASK_TYPE` */
export function assertKnown(type: string, known: readonly string[]): void {
  if (known.length === 0 || known.includes(type)) return;
  throw new CarillonError("UNKNOWN_TASK_TYPE", `this namespace has no task type ${type}.`, {
    field: "type",
    remedy: `Use one of ${known.slice(0, 20).join(", ")}, or allow it in the namespace: ops.types.allow({ types }) of @carillon/ops.`,
  });
}
