import {
  type AnyTaskType,
  bullPrefix,
  Client,
  type Context,
  defineTask,
  type Json,
  Worker,
  type WorkerOptions,
} from "@carillon/sdk";
import {
  eventually,
  type FaultProxy,
  type RedisServer,
  type RedisServerOptions,
  startFaultProxy,
  type TestKit,
  type TestKitOptions,
  testKit,
  type VirtualStore,
  virtualStore,
} from "@carillon/testing";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { z } from "zod";
import { carillon } from "../../apps/cli/test/helpers.js";
import { enqueued, ownRedis, SILENT, sharedRedis } from "../helpers.js";
import { PATIENCE, Program } from "../program.js";

export { type Ended, type Line, PATIENCE, Program } from "../program.js";

/** A schema for any payload. */
export const anything = z.looseObject({});

/** The type `work` of the queue `bells`. */
export function task(handler: (context: Context) => unknown = () => {}) {
  return defineTask("work", {
    queue: "bells",
    payload: anything,
    handler: async (_payload, context) => (await handler(context)) as Json,
  });
}

type ClientChoice = Omit<ConstructorParameters<typeof Client>[0], "connection">;

/** Text that identifies a claim on the wire: only commands that add jobs contain it, in the jobs' options. */
export const COMMIT = '"removeOnComplete":';

/**
 * The stage of a test file: a real Redis, and a namespace for each test. Everything opened here is closed at the end of
 * its test, even if that fails.
 */
export class Stand {
  readonly redis: RedisServer;
  /** A connection that inspects Redis. */
  admin!: Redis;
  namespace = "";
  readonly #ends: (() => unknown)[] = [];
  static #serial = 0;

  private constructor(redis: RedisServer) {
    this.redis = redis;
  }

  /** @param options of a server of its own; default: the shared one */
  static use(options?: RedisServerOptions): Stand {
    const stand = new Stand(options ? ownRedis(options) : sharedRedis());
    beforeAll(() => {
      stand.admin = new Redis(stand.redis.url);
      stand.admin.on("error", () => {}); // tests take the server away
    });
    afterAll(() => stand.admin?.disconnect());
    beforeEach(() => {
      Stand.#serial += 1;
      stand.namespace = `seed${Stand.#serial}`;
    });
    afterEach(async () => {
      // Close in reverse order of opening.
      for (const end of stand.#ends.splice(0).reverse()) await end();
    });
    return stand;
  }

  /** Registers a function to call at the end of the test. */
  later(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** A kit in virtual time, on this Redis. */
  async kit(options: TestKitOptions = {}): Promise<TestKit> {
    const kit = await testKit({ redis: this.redis, namespace: this.namespace, ...options });
    this.later(() => kit.close());
    return kit;
  }

  /** A store in virtual time, on this Redis, for nodes without a kit. */
  async virtual(queue: string, start: number): Promise<VirtualStore> {
    const { redis, namespace } = this;
    const made = await virtualStore({ connection: redis.url, namespace, queues: [queue], start });
    this.later(() => made.store.close());
    return made;
  }

  /** A client with a connection of its own, in real time. */
  client(options: ClientChoice = {}): Client {
    const client = new Client({ connection: this.redis.url, namespace: this.namespace, ...options });
    this.later(() => client.close());
    return client;
  }

  /** A worker in this process, to be started. */
  worker(types: readonly AnyTaskType[], options: Partial<WorkerOptions> = {}): Worker {
    const { redis, namespace } = this;
    const worker = new Worker({ connection: redis.url, namespace, types, logger: SILENT, ...options });
    this.later(() => worker.stop());
    return worker;
  }

  /** Runs a task of a type now, which is in the queue `bells`; its run. */
  async run(client: Client, type: string, id = "t"): Promise<string> {
    await client.put({ id, type, queue: "bells", schedule: { every: "365d" } });
    return enqueued(await client.trigger(id)).run;
  }

  /** The queue as BullMQ itself sees it. */
  queue(name: string): Queue {
    const connection = new Redis(this.redis.url, { maxRetriesPerRequest: null });
    connection.on("error", () => {});
    const queue = new Queue(name, { connection, prefix: bullPrefix(this.namespace, name) });
    queue.on("error", () => {});
    this.later(async () => {
      await queue.close().catch(() => {});
      connection.disconnect();
    });
    return queue;
  }

  /** A scheduler node in a process of its own. */
  node(env: Record<string, string> = {}): Program {
    return this.program("apps/scheduler/bin/carillon-scheduler.js", { CARILLON_PORT: "0", ...env });
  }

  /** One of our programs, which ends with the test. */
  program(file: string, env: Record<string, string> = {}): Program {
    const program = new Program(file, [], { ...this.env, ...env });
    this.later(() => program.kill());
    return program;
  }

  /** Runs the `carillon` command in this process. */
  carillon(args: readonly string[], input = ""): ReturnType<typeof carillon> {
    return carillon(args, { env: this.env, input });
  }

  /** A connection to this Redis on which faults can be injected. */
  async wire(): Promise<FaultProxy> {
    const wire = await startFaultProxy(this.redis);
    this.later(() => wire.close());
    return wire;
  }

  /**
   * Puts one-offs, one after the other, until one is enqueued less than `ms` after its time: on a busy machine not each of them is.
   * @throws if none of `tries` is
   */
  async onTime(client: Client, ms: number, tries = 30): Promise<void> {
    const late: number[] = [];
    for (let n = 0; n < tries; n++) {
      const [id, at] = [`on-time-${n}`, (await this.time()) + 2_000];
      await client.put({ id, type: "work", queue: "bells", schedule: { at } });
      const run = await eventually(async () => (await client.runs.list(id))[0] ?? false, PATIENCE);
      late.push(run.enqueued - at);
      if (run.enqueued < at + ms) return;
    }
    throw new Error(`none was enqueued within ${ms} ms: ${late.join(", ")} ms late`);
  }

  get env(): Record<string, string> {
    return { REDIS_URL: this.redis.url, CARILLON_NAMESPACE: this.namespace };
  }

  /** The server's clock, UTC ms. */
  async time(): Promise<number> {
    const [seconds, micros] = (await this.admin.time()).map(Number) as [number, number];
    return seconds * 1_000 + Math.floor(micros / 1_000);
  }
}
