import { type OverlapPolicy, parseTask, type TaskInput, type TaskName } from "@carillon/core";
import { decide, ScheduleCache, shardOf } from "@carillon/core/internal";
import {
  bullPrefix,
  type ClaimItem,
  type ConnectionSpec,
  dueTask,
  isForeign,
  type PutResult,
  type RedisClient,
  type RetentionOptions,
  type Settlement,
  type StartResult,
  type Store,
  type StoredTask,
  type Worked,
} from "@carillon/store";
import { internalsOf, type StoreSeams, withSeams } from "@carillon/store/internal";
import { type VirtualClock, virtualStore } from "@carillon/testing";
import { type Job, Queue, Worker } from "bullmq";
import { Cluster, type Redis } from "ioredis";
import { beforeEach, expect } from "vitest";
import { attempt, enqueued } from "../../../test/helpers.js";

export const START = Date.parse("2026-01-01T00:00:00Z");
export const QUEUE = "bells";

let serial = 0;

export interface Half {
  readonly items: ClaimItem[];
  readonly now: number;
  readonly shard: number;
}

/** A put that has begun in a namespace without freezes. */
export const ENTERED = { mark: "", freezes: "" };

function virtual(connection: ConnectionSpec, { sabotage, ...options }: BenchOptions = {}) {
  serial += 1;
  const made = { connection, start: START, namespace: `b${serial}`, queues: [QUEUE], ...options };
  return virtualStore(withSeams(made, { sabotage }));
}

interface BenchOptions {
  queues?: string[];
  retention?: RetentionOptions;
  namespace?: string;
  /** Safety parts that are left out. */
  sabotage?: StoreSeams["sabotage"];
}

/** A store on a virtual clock, with the operations that tests use. */
export class Bench {
  store!: Store;
  clock!: VirtualClock;
  #schedules = new ScheduleCache();
  readonly #open: { close(): Promise<unknown> }[] = [];

  /** The bench of a group, in a namespace of its own for each test. */
  static use(connection: () => ConnectionSpec, options?: BenchOptions): Bench {
    const bench = new Bench();
    beforeEach(async () => {
      Object.assign(bench, await virtual(connection(), options));
      bench.#schedules = new ScheduleCache();
      return () => bench.close();
    });
    return bench;
  }

  static async open(connection: ConnectionSpec, options?: BenchOptions): Promise<Bench> {
    return Object.assign(new Bench(), await virtual(connection, options));
  }

  name(id: string, owner = "system"): TaskName {
    return { queue: QUEUE, owner, id };
  }

  async put({ queue = QUEUE, ...input }: Partial<TaskInput> & { id: string }): Promise<PutResult> {
    const [result] = await this.putAll(queue, [input]);
    return result as PutResult;
  }

  async putAll(
    queue: string,
    inputs: readonly (Partial<TaskInput> & { id: string })[],
  ): Promise<PutResult[]> {
    const all = inputs.map((input) =>
      parseTask({ type: "noop", queue, schedule: { every: "10s" }, ...input }),
    );
    return this.store.tasks.put(queue, all);
  }

  async stored(id: string, owner?: string): Promise<StoredTask> {
    return (await this.store.tasks.get(this.name(id, owner))) as StoredTask;
  }

  async trigger(id: string, token: string, overlap?: OverlapPolicy) {
    return this.store.claims.trigger(this.name(id), { key: `key-${token}`, token, node: "test" }, overlap);
  }

  /** Runs a task now; its run. */
  async run(id: string, token = "a", overlap?: OverlapPolicy): Promise<string> {
    return enqueued(await this.trigger(id, token, overlap)).run;
  }

  /** Starts an attempt of a run, as a worker does. */
  begin(task: string | TaskName, run: string, more?: Partial<Worked>): Promise<StartResult> {
    return this.store.runs.start(typeof task === "string" ? this.name(task) : task, run, attempt(more));
  }

  /** An attempt that begins. */
  async begun(task: string | TaskName, run: string, more?: Partial<Worked>) {
    const started = await this.begin(task, run, more);
    if (started.word !== "OK") throw new Error(started.word);
    return started;
  }

  /** Settles an attempt; `fence` as it began. */
  settle(
    task: string | TaskName,
    run: string,
    fence: number,
    end: Partial<Settlement> = {},
  ): Promise<string> {
    const name = typeof task === "string" ? this.name(task) : task;
    return this.store.runs.settle(name, run, { fence, outcome: "succeeded", ...end });
  }

  /** Works a run. */
  async work(task: string | TaskName, run: string, end?: Partial<Settlement>): Promise<void> {
    const { fence } = await this.begun(task, run);
    expect(await this.settle(task, run, fence, end)).toBe("OK");
  }

  /**
   * The read half of a claim, separate from the commit, so that a test can act in between.
   * @param again as a node reads it after a refusal
   */
  async read(id: string, owner = "system", again = false): Promise<Half> {
    const local = `${owner}/${id}`;
    const shard = shardOf(local);
    const which = again ? { names: [local], final: true } : {};
    const { now, entries } = await this.store.claims.readDue(QUEUE, shard, 50, which);
    const items = entries.flatMap((entry): ClaimItem[] => {
      const { task } = entry;
      if (!task || isForeign(task)) return [];
      const item = { ...entry, task };
      return [{ entry: item, decision: decide(dueTask(item, this.#schedules), now) }];
    });
    return { items, now, shard };
  }

  async commit(half: Half, token: string): Promise<string[]> {
    const { claims } = this.store;
    const items = half.items.map((item, i) =>
      claims.pack(QUEUE, item, i === 0 ? token : `${token}.${i}`, half.now),
    );
    const { results } = await claims.commit(QUEUE, items, { token, node: "test" });
    return results.map(({ status }) => status);
  }

  async claim(id: string, token: string, owner?: string): Promise<string[]> {
    const answers = await this.commit(await this.read(id, owner), token);
    return answers.includes("OVERLAP")
      ? this.commit(await this.read(id, owner, true), `${token}.again`)
      : answers;
  }

  /** Claims everything that is due in the queue, as a node would. */
  async claimAll(token: string): Promise<string[]> {
    const seen: string[] = [];
    for (let shard = 0; shard < 8; shard++) {
      const { entries } = await this.store.claims.readDue(QUEUE, shard, 1);
      const first = entries[0]?.local;
      if (first === undefined) continue;
      const [owner, id] = first.split("/") as [string, string];
      seen.push(...(await this.claim(id, `${token}${shard}`, owner)));
    }
    return seen;
  }

  /** Encoding of a key: `listpack` if it is small, whatever the name in this version of Redis. */
  async encoding(key: string): Promise<string> {
    const said = await internalsOf(this.store).link.ask((client) => client.object("ENCODING", key));
    return String(said).replace("ziplist", "listpack");
  }

  /** Runs `act` at the worst moment: right before the next script of this name is sent. */
  before(script: string, act: () => Promise<unknown>): void {
    const { link } = internalsOf(this.store);
    const { run } = link;
    link.run = async (sent, keys, args) => {
      if (sent.name === script) {
        link.run = run;
        await act();
      }
      return run.call(link, sent, keys, args);
    };
  }

  /** Runs `act` in a process that dies before it can send a script of this name. */
  async cutOff(script: string, act: () => Promise<unknown>): Promise<void> {
    const { link } = internalsOf(this.store);
    const { run } = link;
    link.run = async (sent, keys, args) => {
      if (sent.name === script) throw new Error("cut off");
      return run.call(link, sent, keys, args);
    };
    await expect(act()).rejects.toThrow("cut off");
    link.run = run;
  }

  queue(name = QUEUE): Queue {
    const connection = this.connect();
    const queue = new Queue(name, { connection, prefix: bullPrefix(this.store.namespace, name) });
    this.#open.push(queue);
    return queue;
  }

  connect(): RedisClient {
    const connection = this.store.connect("patient");
    this.#open.push({ close: async () => connection.disconnect() });
    return connection;
  }

  async jobs(): Promise<Job[]> {
    return this.queue().getJobs(
      ["wait", "prioritized", "active", "completed", "failed", "delayed"],
      0,
      -1,
      true,
    );
  }

  /** Lets a plain BullMQ worker work all waiting jobs. */
  async workAll(handler: (job: Job) => Promise<unknown> = async () => null): Promise<void> {
    let failed: unknown;
    const processor = async (job: Job) => {
      try {
        return await handler(job);
      } catch (error) {
        // A failed expectation of the test, not a failure of the job.
        if ((error as Error).name === "AssertionError") failed = error;
        throw error;
      }
    };
    const worker = new Worker(QUEUE, processor, {
      connection: this.connect(),
      prefix: bullPrefix(this.store.namespace, QUEUE),
    });
    await new Promise<void>((resolve) => worker.once("drained", resolve));
    await worker.close();
    if (failed !== undefined) throw failed;
  }

  /**
   * All keys but the change log, which outlives its tasks and is written without waiting, and marks of changes, which
   * are random and expire.
   */
  async dump(): Promise<Record<string, unknown>> {
    const { namespace } = this.store;
    const others = [`{${namespace}}:changes`];
    return dump(
      internalsOf(this.store).link.client,
      (key) =>
        (key.startsWith(`{${namespace}}`) || key.startsWith(`{${namespace}:`)) &&
        !key.endsWith(":~clock") &&
        !/\}:(~?marks|sent:.*)$/.test(key) &&
        !others.includes(key),
    );
  }

  /** Does a node's upkeep: reconciles runs, deletes tasks that have lingered, and delivers alerts. */
  async reconcile(): Promise<[run: string, what: string][]> {
    const { seen, lingered } = await this.store.runs.reconcile(QUEUE);
    for (const name of lingered) await this.store.tasks.delete(name, "finished");
    const lines = (await this.store.alerts.waiting(QUEUE)).map(({ line }) => line);
    if (lines.length > 0) await this.store.alerts.removeDelivered(QUEUE, lines);
    return seen;
  }

  /**
   * Keys of Carillon, without BullMQ's, and without those that expire: they tell late requests from new ones, or keep the definitions of deleted
   * tasks.
   */
  async ownKeys(): Promise<string[]> {
    const all = Object.keys(await this.dump());
    const tag = `{${this.store.namespace}`;
    return all
      .filter((key) => key.startsWith(tag) && (key.includes(":~") || !key.startsWith(`${tag}:`)))
      .filter((key) => !/:~(turn|asked):|:~late$|:~deleted($|:)|:past-queues$/.test(key))
      .filter((key) => !key.includes(":~revs:") || all.includes(key.replace(":~revs:", ":~t:")))
      .sort();
  }

  async close(): Promise<void> {
    for (const one of this.#open.splice(0).reverse()) await one.close();
    await this.store.close();
  }
}

/**
 * All keys of a server, or of all masters, with their values. Not by DUMP, because Redis may reorder the fields of a
 * hash that is only read.
 */
async function dump(client: RedisClient, wanted: (key: string) => boolean): Promise<Record<string, unknown>> {
  const masters = client instanceof Cluster ? client.nodes("master") : [client];
  const found: [string, unknown][] = [];
  for (const master of masters) {
    for (const key of (await master.keys("*")).filter(wanted)) {
      found.push([key, { value: await contentOf(master, key), expires: (await master.pttl(key)) >= 0 }]);
    }
  }
  return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function contentOf(client: Redis, key: string): Promise<unknown> {
  switch (await client.type(key)) {
    case "string":
      return client.get(key);
    case "hash":
      return client.hgetall(key);
    case "list":
      return client.lrange(key, 0, -1);
    case "set":
      return (await client.smembers(key)).sort();
    case "zset":
      return client.zrange(key, 0, "-1", "WITHSCORES");
    case "stream":
      return client.xrange(key, "-", "+");
    default:
      throw new Error(`What is ${key}?`);
  }
}
