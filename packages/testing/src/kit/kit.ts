import type { TaskRef } from "@carillon/core";
import { conflict, invalid } from "@carillon/core/internal";
import { Scheduler } from "@carillon/scheduler";
import { Client } from "@carillon/sdk";
import type { Store } from "@carillon/store";
import type { WorkerOptions as BullWorkerOptions, Processor } from "bullmq";
import { type RedisServer, startRedis } from "../redis.js";
import { Complaints } from "./complaints.js";
import { Crew } from "./crew.js";
import { Director } from "./director.js";
import { Expectation } from "./expectation.js";
import { type History, historyOf } from "./history.js";
import { KitClock, kitStore } from "./kit-clock.js";
import { carillonWorker, KitWorker, plainWorker } from "./kit-worker.js";
import { lengthOf, type Moment, type Span, timeOf } from "./moment.js";
import { checked, type Settings, type TestKitOptions } from "./options.js";
import { othersFirst, Pulse } from "./pulse.js";
import { Stage } from "./stage.js";
import { fakeDate } from "./virtual-date.js";

/** Options of a plain worker; connection, prefix and locks are set by the kit. */
export type PlainWorkerOptions = Omit<
  BullWorkerOptions,
  "connection" | "prefix" | "lockDuration" | "lockRenewTime" | "autorun"
>;

/**
 * A real Redis with real nodes and a worker of Carillon, in virtual time that the test moves. While it is open, `Date` in this
 * process shows virtual time; timers stay real.
 *
 * @example
 * const kit = await testKit({ types: [report] });
 * await kit.client.put(report, { id: "r", schedule: { every: "1h" }, payload: {} });
 * await kit.advance("3 days");
 * await kit.expect("r").fired(72).outcome("succeeded");
 * await kit.close();
 */
export class TestKit {
  readonly client: Client;
  /** For clients of your own: `new Client({ store: kit.store, owner: "acme" })`. */
  readonly store: Store;
  readonly redis: RedisServer;
  readonly #settings: Settings;
  readonly #clock: KitClock;
  readonly #stage: Stage;
  readonly #director: Director;
  readonly #crew: Crew;
  readonly #pulse = new Pulse();
  readonly #complaints = new Complaints();
  readonly #nodes: Scheduler[];
  readonly #stores: Store[] = [];
  readonly #workers: KitWorker[] = [];
  readonly #expectations = new Set<Expectation>();
  readonly #restoreDate: () => void;
  #worker: KitWorker | undefined;
  #closed: Promise<void> | undefined;

  private constructor(settings: Settings, redis: RedisServer, clock: KitClock, restoreDate: () => void) {
    this.#settings = settings;
    this.redis = redis;
    this.#clock = clock;
    this.#restoreDate = restoreDate;
    this.store = this.#newStore();
    const { telemetry } = settings;
    this.client = new Client({ store: this.store, telemetry });
    this.#nodes = Array.from({ length: settings.nodes }, (_, i) => {
      const own = { store: this.#newStore(), nodeId: `node-${i + 1}`, logger: this.#complaints };
      return new Scheduler({ ...own, telemetry });
    });
    this.#stage = new Stage(this.#pulse, () => clock.now);
    this.#crew = new Crew(clock.start);
    this.#director = new Director({
      clock,
      store: this.store,
      stage: this.#stage,
      crew: this.#crew,
      pulse: this.#pulse,
      nodes: this.#nodes,
      patience: settings.patience,
      complaints: this.#complaints,
    });
  }

  /** @throws `INVALID_OPTION`, `CONFLICT` while another kit is open, `REDIS_UNAVAILABLE` */
  static async open(options: TestKitOptions): Promise<TestKit> {
    const settings = checked(options);
    const clock = new KitClock(settings.namespace, settings.start);
    const restoreDate = fakeDate(() => clock.now);
    let redis: RedisServer;
    try {
      redis = settings.redis ?? (await startRedis());
    } catch (error) {
      restoreDate();
      throw error;
    }
    const kit = new TestKit(settings, redis, clock, restoreDate);
    try {
      await clock.set(kit.store, clock.start);
      if (settings.worker) {
        const { types, queues, middleware, telemetry, concurrency } = settings;
        await kit.work({ types, queues, middleware, telemetry, concurrency });
      }
      return kit;
    } catch (error) {
      await kit.close();
      throw error;
    }
  }

  #newStore(): Store {
    const { namespace, retention } = this.#settings;
    const store = kitStore(this.redis.url, namespace, retention);
    this.#stores.push(store);
    return store;
  }

  async #addWorker(open: ConstructorParameters<typeof KitWorker>[2]): Promise<KitWorker> {
    const parts = {
      clock: this.#clock,
      stage: this.#stage,
      crew: this.#crew,
      pulse: this.#pulse,
      director: this.#director,
    };
    const worker = new KitWorker(parts, () => this.#newStore(), open);
    this.#workers.push(worker);
    await worker.start();
    return worker;
  }

  /** Virtual time, in UTC ms. */
  get now(): number {
    return this.#clock.now;
  }

  get namespace(): string {
    return this.#settings.namespace;
  }

  /** Carillon's own worker. */
  get worker(): KitWorker {
    if (this.#worker) return this.#worker;
    throw conflict(
      "this kit was opened without a worker.",
      "Leave out worker: false, or use what bullWorker returned.",
    );
  }

  /**
   * Opens Carillon's own worker in a kit that was opened with `worker: false`, for types that are known only now.
   *
   * @throws `CONFLICT` if the kit has one
   */
  async work(
    options: Pick<TestKitOptions, "types" | "queues" | "middleware" | "telemetry" | "concurrency">,
  ): Promise<KitWorker> {
    if (this.#worker) throw conflict("this kit has a worker already.", "Open the kit with worker: false.");
    const settings = checked({ ...options, namespace: this.namespace });
    const own = { ...settings, logger: this.#complaints };
    this.#worker = await this.#addWorker(carillonWorker(own, { clock: this.#clock, stage: this.#stage }));
    return this.#worker;
  }

  /** A plain BullMQ worker on a queue of Carillon's, in virtual time like the kit's own. */
  bullWorker(queue: string, process: Processor, options: PlainWorkerOptions = {}): Promise<KitWorker> {
    return this.#addWorker(plainWorker(queue, process, options, this.#complaints));
  }

  /** Lets this much virtual time pass, with everything that happens in it; 0 does everything that happens now. */
  async advance(span: Span): Promise<void> {
    await this.#moveTo(this.#clock.now + lengthOf(span, "span"));
  }

  /** Lets virtual time pass up to and including this moment. */
  async advanceTo(moment: Moment): Promise<void> {
    await this.#moveTo(timeOf(moment, this.#clock.start, "moment"));
  }

  async #moveTo(target: number): Promise<void> {
    if (this.#closed) throw conflict("this test kit is closed.", "Open another one.");
    await this.#hearExpectations();
    await this.#director.moveTo(target);
  }

  /**
   * Scripts an event for a moment. Within one moment the order is: jobs that workers can take, scripted events, sleeps that
   * end, the nodes. `advance` throws what `act` throws.
   */
  at(moment: Moment, act: () => unknown): void {
    const time = timeOf(moment, this.#clock.start, "moment");
    if (time < this.#clock.now) throw invalid("moment", "in the past.", "Virtual time only goes forward.");
    this.#director.script(time, act);
  }

  /** Lets a handler or a scripted event wait in virtual time. Rejects with the signal's reason when it is aborted. */
  sleep(span: Span, options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    return this.#stage.sleep(this.#clock.now + lengthOf(span, "span"), options.signal);
  }

  sleepUntil(moment: Moment, options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    return this.#stage.sleep(timeOf(moment, this.#clock.start, "moment"), options.signal);
  }

  /**
   * Lets a handler wait for another one of this process, for example at a lock: virtual time passes meanwhile as in a sleep.
   * Otherwise it would stand still.
   */
  idle<T>(wait: Promise<T>): Promise<T> {
    return this.#stage.idle(wait);
  }

  /** Begins an expectation of a task as of now. Await it. */
  expect(ref: TaskRef): Expectation {
    const expectation = new Expectation(this.store, ref, this.#clock.start, this.#complaints);
    this.#expectations.add(expectation);
    return expectation;
  }

  /** All runs and skips of a task. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  history(ref: TaskRef): Promise<History> {
    return historyOf(this.store, ref);
  }

  async #hearExpectations(): Promise<void> {
    const expectations = [...this.#expectations];
    this.#expectations.clear();
    for (const expectation of expectations) await expectation.unheard();
  }

  /**
   * Ends everything, without waiting for handlers: their virtual sleeps reject, so that `finally` blocks run. `Date` is
   * real again. @throws the failure of an expectation that was not awaited
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const heard = this.#hearExpectations();
    try {
      await heard.catch(() => {});
      for (const worker of this.#workers) await worker.close();
      this.#stage.clear(new Error("The test kit was closed."));
      await othersFirst();
      for (const node of this.#nodes) await node.stop();
      await Promise.all(this.#stores.map((store) => store.close()));
      if (!this.#settings.redis) await this.redis.stop();
    } finally {
      this.#restoreDate();
    }
    await heard;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Opens a kit. A process can have one at a time; always close it, for example in `afterEach`.
 *
 * @throws `INVALID_OPTION`, `CONFLICT` while another kit is open, `REDIS_UNAVAILABLE`
 */
export function testKit(options: TestKitOptions = {}): Promise<TestKit> {
  return TestKit.open(options);
}
