import { CarillonError } from "@carillon/core";
import { type AnyTaskType, Worker, type WorkerLogger } from "@carillon/sdk";
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

/** Makes BullMQ workers on the store's Redis; returns what lets go of what they used. */
type Open = (store: Store) => Promise<() => Promise<void>>;

/** A worker in a test's hands. Each call takes effect at the moment of virtual time at which it is made. */
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

  /** Takes no more jobs; those that it has go on. */
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
   * As if its process had been killed: its handlers stop where they are, in a virtual sleep, and never go on; its locks run out,
   * and BullMQ gives its jobs to another worker of the queue 30 to 60 virtual seconds later. `start` is the new process.
   */
  async crash(): Promise<void> {
    this.#mustRun("crashed");
    const { director, crew, clock } = this.#parts;
    await director.calm();
    for (const bull of this.#bulls) await crew.crash(bull, clock.now);
    await this.#letGo();
  }

  /** Without waiting for its jobs. */
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
    throw new CarillonError("CONFLICT", `a worker that does not run cannot be ${what}.`, {
      remedy: "Start it first: await worker.start().",
    });
  }
}

/** How a kit opens Carillon's own worker. */
export function carillonWorker(
  options: {
    types: readonly AnyTaskType[];
    queues: readonly string[];
    concurrency: number;
    logger: WorkerLogger;
  },
  { clock, stage }: Pick<WorkerParts, "clock" | "stage">,
): Open {
  const { types, queues, concurrency, logger } = options;
  return async (store) => {
    const worker = new Worker(
      { types, queues, concurrency, logger, store, lockDuration: LOCK_DURATION },
      // Time limits are virtual too.
      { clock: { now: () => clock.now, after: (ms, act) => stage.after(ms, act) } },
    );
    await worker.start();
    return () => worker.stop();
  };
}

/** How a kit opens a plain BullMQ worker, which knows nothing of Carillon. */
export function plainWorker(
  queue: string,
  process: Processor,
  options: Omit<BullWorkerOptions, "connection" | "prefix">,
  logger: WorkerLogger,
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
