import { conflict } from "@carillon/core/internal";
import { type AnyTaskType, type Logger, type Middleware, Worker } from "@carillon/sdk";
import { type Telemetry, type WorkerClock, withWorkerSeams } from "@carillon/sdk/internal";
import { bullPrefix, type Store } from "@carillon/store";
import { Worker as BullWorker, type WorkerOptions as BullWorkerOptions, type Processor } from "bullmq";
import { KitBullWorker, LOCK_DURATION, workersMadeBy } from "./bull-worker.js";
import type { Crew } from "./crew.js";
import type { Director } from "./director.js";
import type { KitClock } from "./kit-clock.js";
import type { Pulse } from "./pulse.js";
import type { Stage } from "./stage.js";

export interface WorkerParts {
  readonly clock: KitClock;
  readonly stage: Stage;
  readonly crew: Crew;
  readonly pulse: Pulse;
  readonly director: Director;
}

/** Creates BullMQ workers on the store's Redis; returns a function that releases their resources. */
type Open = (store: Store) => Promise<() => Promise<void>>;

/** A worker that a test controls. Each call takes effect at the current virtual time. */
export class KitWorker {
  readonly #parts: WorkerParts;
  readonly #newStore: () => Store;
  readonly #open: Open;
  #bulls: KitBullWorker[] = [];
  #store: Store | undefined;
  #release: (() => Promise<void>) | undefined;

  constructor(parts: WorkerParts, newStore: () => Store, open: Open) {
    this.#parts = parts;
    this.#newStore = newStore;
    this.#open = open;
  }

  /** Begins to take jobs; after a crash, as a new process would. */
  async start(): Promise<void> {
    if (this.#store) return;
    const { clock, stage, crew, pulse } = this.#parts;
    const store = this.#newStore();
    this.#store = store;
    await workersMadeBy(
      async () => {
        this.#release = await this.#open(store);
      },
      (bull) => {
        const worker = new KitBullWorker(bull, store, stage, pulse, clock.now);
        crew.add(worker);
        this.#bulls.push(worker);
      },
    );
  }

  /** Takes no more jobs; its current ones go on. */
  async pause(): Promise<void> {
    this.#mustRun("paused");
    await this.#parts.director.calm();
    for (const bull of this.#bulls) await bull.pause();
  }

  async resume(): Promise<void> {
    this.#mustRun("resumed");
    for (const bull of this.#bulls) await bull.resume(this.#parts.clock.now);
  }

  /**
   * Kills the worker as if its process had been killed: its handlers stop in their virtual sleep, and never go on; its locks expire,
   * and BullMQ passes its jobs to another worker of the queue 30 to 60 virtual seconds later. `start` acts as the new process.
   */
  async crash(): Promise<void> {
    this.#mustRun("crashed");
    const { director, crew, clock } = this.#parts;
    await director.calm();
    for (const bull of this.#bulls) await crew.crash(bull, clock.now);
    await this.#letGo();
  }

  /** Closes it without waiting for its jobs. */
  async close(): Promise<void> {
    for (const bull of this.#bulls) await this.#parts.crew.remove(bull);
    await this.#letGo();
  }

  async #letGo(): Promise<void> {
    this.#bulls = [];
    await this.#release?.();
    await this.#store?.close();
    this.#release = undefined;
    this.#store = undefined;
  }

  #mustRun(what: string): void {
    if (this.#store) return;
    throw conflict(`a worker that does not run cannot be ${what}.`, "Start it first: await worker.start().");
  }
}

export function carillonWorker(
  options: {
    types: readonly AnyTaskType[];
    queues: readonly string[];
    middleware: readonly Middleware[];
    telemetry: Telemetry | undefined;
    concurrency: number;
    logger: Logger;
  },
  { clock, stage }: Pick<WorkerParts, "clock" | "stage">,
): Open {
  const { types, queues, middleware, telemetry, concurrency, logger } = options;
  return async (store) => {
    // Without types there is nothing to work: such a kit tests times.
    if (types.length === 0) return async () => {};
    const lockDuration = LOCK_DURATION;
    const options = { types, queues, middleware, telemetry, concurrency, logger, store, lockDuration };
    // Time limits are virtual too, and time passes while items wait for each other.
    const virtual: WorkerClock = {
      now: () => clock.now,
      after: (ms, act) => stage.after(ms, act),
      idle: (wait) => stage.idle(wait),
    };
    const worker = new Worker(withWorkerSeams(options, { clock: virtual }));
    await worker.start();
    return () => worker.stop();
  };
}

/** Opens a plain BullMQ worker, which knows nothing of Carillon. */
export function plainWorker(
  queue: string,
  process: Processor,
  options: Omit<BullWorkerOptions, "connection" | "prefix">,
  logger: Logger,
): Open {
  return async (store) => {
    const connection = store.connect("patient");
    const worker = new BullWorker(queue, process, {
      ...options,
      connection,
      prefix: bullPrefix(store.namespace, queue),
      lockDuration: LOCK_DURATION,
      autorun: true,
    });
    worker.on("error", (error) => logger.error({ queue, error: error.message }, "worker"));
    return async () => connection.disconnect();
  };
}
