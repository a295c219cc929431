import { decide, shardOf } from "@carillon/core/internal";
import {
  type AnyTaskType,
  bullPrefix,
  Client,
  type Context,
  defineTask,
  type TaskInput,
  Worker,
  type WorkerEvents,
  type WorkerOptions,
} from "@carillon/sdk";
import { type WorkerClock, type WorkerSeams, withWorkerSeams } from "@carillon/sdk/internal";
import { dueTask, isForeign } from "@carillon/store";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { eventually, type RedisServer } from "@carillon/testing";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { z } from "zod";
import { enqueued, gate, SILENT, sharedRedis } from "../../../../test/helpers.js";

export const QUEUE = "bells";
export const nothing = z.object({}).loose();

/** A task type that accepts any payload. */
export function typed(handler: (context: Context) => unknown, type = "type") {
  return defineTask(type, {
    queue: QUEUE,
    payload: nothing,
    handler: (_payload, context) => handler(context) as never,
  });
}

/** One whose handler passes its context to the test. */
export function telling(type: string, then: (context: Context) => unknown) {
  const begun = gate<Context>();
  const handler = (context: Context) => {
    begun.resolve(context);
    return then(context);
  };
  return { definition: typed(handler, type), begun: begun.promise };
}

/** Rejects with the signal's reason when it is aborted, as a well-behaved handler does. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener("abort", () => reject(signal.reason as Error));
  });
}

/** A clock for time limits that moves only on request. */
export class HandClock implements WorkerClock {
  readonly idle = <T>(wait: Promise<T>) => wait;
  #now = 0;
  readonly #timers = new Set<{ at: number; act: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, act: () => void): () => void {
    const timer = { at: this.#now + ms, act };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = [...this.#timers].sort((a, b) => a.at - b.at)[0];
      if (!next || next.at > end) break;
      this.#timers.delete(next);
      this.#now = next.at;
      next.act();
    }
    this.#now = end;
  }

  /** Timers that are armed. */
  get armed(): number {
    return this.#timers.size;
  }
}

let serial = 0;

/** The shared Redis; a namespace, a client and workers for each test. */
export class Bench {
  readonly redis: RedisServer;
  admin!: Redis;
  client!: Client;
  namespace!: string;
  readonly #workers: Worker[] = [];
  readonly #queues: Queue[] = [];
  readonly #gates: { resolve(): void }[] = [];

  private constructor(redis: RedisServer) {
    this.redis = redis;
  }

  static use(name: string, redis = sharedRedis()): Bench {
    const bench = new Bench(redis);
    beforeAll(() => {
      bench.admin = new Redis(bench.redis.url);
    });
    afterAll(() => bench.admin.disconnect());
    beforeEach(() => {
      serial += 1;
      bench.namespace = `${name}${serial}`;
      bench.client = new Client({ connection: bench.redis.url, namespace: bench.namespace });
    });
    afterEach(async () => {
      for (const { resolve } of bench.#gates.splice(0)) resolve();
      for (const worker of bench.#workers.splice(0)) await worker.stop();
      for (const queue of bench.#queues.splice(0)) await queue.close();
      await bench.client.close();
    });
    return bench;
  }

  /** A gate for handlers. It opens at the end of the test, so that a failed one does not wait for them. */
  gate() {
    const made = gate();
    this.#gates.push(made);
    return made;
  }

  async work(
    types: readonly AnyTaskType[],
    options: Partial<WorkerOptions> = {},
    seams: WorkerSeams = {},
  ): Promise<Worker> {
    const { namespace } = this;
    const on = { connection: this.redis.url, namespace, types, queues: [QUEUE], logger: SILENT };
    const worker = new Worker(withWorkerSeams({ ...on, ...options }, seams));
    this.#workers.push(worker);
    await worker.start();
    return worker;
  }

  /** Puts a task that fires in an hour, and runs it now. Returns the run. */
  async run(id: string, type: string, rest: Partial<TaskInput> = {}): Promise<string> {
    await this.put(id, type, rest);
    return this.again(id);
  }

  /** Puts a task that fires in an hour. */
  async put(id: string, type: string, rest: Partial<TaskInput> = {}): Promise<void> {
    const schedule = { every: "1h" };
    await this.client.put({ id, type, queue: QUEUE, schedule, payload: {}, overlap: "allow", ...rest });
  }

  /** Claims the next occurrence of a task, alone in its queue, when it is due, as a node does. Returns the run. */
  async due(id: string): Promise<string> {
    const { claims, calendars } = storeOf(this.client);
    const shard = shardOf(`system/${id}`);
    return eventually(async () => {
      const { now, entries } = await claims.readDue(QUEUE, shard, 1);
      const [entry] = entries;
      if (!entry?.task || isForeign(entry.task)) throw new Error(`${id} is not due`);
      const read = { ...entry, task: entry.task };
      const decision = decide(dueTask(read, calendars.schedules), now);
      const by = { token: `t${now}`, node: "test" };
      const packed = claims.pack(QUEUE, { entry: read, decision }, by.token, now);
      const { results } = await claims.commit(QUEUE, [packed], by);
      if (results[0]?.run === undefined) throw new Error(`it was ${results[0]?.status}`);
      return results[0].run;
    });
  }

  /** Runs an existing task. */
  async again(id: string): Promise<string> {
    return enqueued(await this.client.trigger(id)).run;
  }

  async record(run: string) {
    return storeOf(this.client).runs.get(QUEUE, run);
  }

  async output(run: string) {
    return storeOf(this.client).runs.output(QUEUE, run);
  }

  async stats(id: string) {
    return storeOf(this.client).runs.stats({ queue: QUEUE, owner: "system", id });
  }

  async cancel(id: string, run: string): Promise<string> {
    return storeOf(this.client).runs.cancel({ queue: QUEUE, owner: "system", id }, run, "test");
  }

  queue(): Queue {
    const { namespace } = this;
    const queue = new Queue(QUEUE, {
      connection: { url: this.redis.url },
      prefix: bullPrefix(namespace, QUEUE),
    });
    this.#queues.push(queue);
    return queue;
  }

  jobKey(id: string): string {
    return internalsOf(storeOf(this.client)).keys.queue(QUEUE).job(id);
  }

  itemsKey(run: string): string {
    return internalsOf(storeOf(this.client)).keys.queue(QUEUE).items(run);
  }

  /** BullMQ's and our keys of this test's queue. */
  async keys(pattern: string): Promise<string[]> {
    return (await this.admin.keys(`${bullPrefix(this.namespace, QUEUE)}:${pattern}`)).sort();
  }
}

/** `events.once` would also listen to "error", and reject for a lost lock. */
export function next<Event extends keyof WorkerEvents>(
  worker: Worker,
  event: Event,
): Promise<WorkerEvents[Event][0]> {
  return new Promise((resolve) => {
    (worker as unknown as NodeJS.EventEmitter).once(event, resolve);
  });
}
