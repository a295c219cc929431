import { defineTask, Worker } from "@carillon/sdk";
import { withWorkerSeams } from "@carillon/sdk/internal";
import type { RedisClient, Store } from "@carillon/store";
import { Worker as BullWorker, type Job } from "bullmq";
import { z } from "zod";
import { SILENT } from "../../../../test/helpers.js";
import { Actor, type Park } from "./actor.js";
import type { Attempt } from "./checks.js";
import type { Director } from "./director.js";
import { Ears } from "./ears.js";

/** Locks in Redis use real time: with this length, in ms, none expires on its own. */
const LOCK_DURATION = 24 * 3_600_000;

/** Members of BullMQ's worker beyond its public API. */
interface Internals {
  processJob(job: Job, token: string, fetchNext: () => boolean): Promise<unknown>;
  moveStalledJobsToWait(): Promise<void>;
}

/** Parts of the simulation that a worker needs. */
export interface WorkerParts {
  readonly director: Director;
  readonly store: Store;
  readonly connection: RedisClient;
  readonly queue: string;
  readonly prefix: string;
  /** Stops at a failpoint. */
  pass(point: string): Promise<void>;
  /** Called when a handler of ours begins. */
  began(task: string, fence: number): void;
}

/** A worker process that takes one job at a time, and ends it as BullMQ's own loop does. */
export abstract class WorkerActor extends Actor {
  /** Its job, from the take to the release. */
  job: string | undefined;
  protected abstract readonly bull: BullWorker;
  protected readonly parts: WorkerParts;
  #tokens = 0;

  constructor(name: string, parts: WorkerParts) {
    super(name);
    this.parts = parts;
  }

  get #internals(): Internals {
    return this.bull as unknown as Internals;
  }

  async ready(): Promise<void> {
    await this.bull.waitUntilReady();
  }

  /** Takes and works the next job. Resolves with whether there was one. */
  async take(): Promise<boolean> {
    this.#tokens += 1;
    const token = `${this.name}.${this.#tokens}`;
    const job = (await this.bull.getNextJob(token, { block: false })) as Job | undefined;
    if (!job) return false;
    this.job = job.id as string;
    await this.parts.pass("after take");
    this.#parkAtEnds(job);
    await this.#internals.processJob(job, token, () => false);
    this.job = undefined;
    return true;
  }

  /** Points at which BullMQ learns how the job ended. */
  #parkAtEnds(job: Job): void {
    for (const end of ["moveToCompleted", "moveToFailed", "moveToDelayed"] as const) {
      const move = job[end].bind(job) as (...args: unknown[]) => Promise<unknown>;
      const parked = async (...args: unknown[]) => {
        await this.parts.pass("before end");
        const answer = await move(...args);
        await this.parts.pass("after end");
        return answer;
      };
      Object.assign(job, { [end]: parked });
    }
  }

  /** Works until the director ends it, or its signal is aborted. */
  protected async handle(signal?: AbortSignal): Promise<void> {
    const parked = this.parts.director.park(this, "handler");
    const park = this.parks.at(-1) as Park;
    signal?.addEventListener("abort", () => {
      if (!this.parks.includes(park)) return;
      this.release(park);
      park.fail(String(signal.reason));
    });
    await parked;
  }

  override abandon(): void {
    super.abandon();
    this.job = undefined;
  }

  /** Lets the lock of a job expire: BullMQ's check for stalled jobs hands it over. */
  async rescue(job: string): Promise<void> {
    const { connection, prefix, queue } = this.parts;
    const bull = `${prefix}:${queue}:`;
    await connection.del(`${bull}${job}:lock`, `${bull}stalled-check`);
    await connection.sadd(`${bull}stalled`, job);
    await this.#internals.moveStalledJobsToWait();
  }

  async close(): Promise<void> {
    await this.bull.close(true);
  }
}

/** Carillon's own worker. */
export class CarillonWorkerActor extends WorkerActor {
  readonly kind = "worker";
  protected bull!: BullWorker;
  ears: Ears | undefined;
  /** The last attempt whose handler began. */
  attempt: Attempt | undefined;
  readonly #dead: BullWorker[] = [];

  override async ready(): Promise<void> {
    await this.#begin();
    await super.ready();
  }

  /** A new process in place of one that died, without any state. */
  async restart(): Promise<void> {
    this.#dead.push(this.bull);
    await this.ready();
  }

  override abandon(): void {
    super.abandon();
    this.ears = undefined;
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), ...this.#dead.map((bull) => bull.close(true))]);
  }

  async #begin(): Promise<void> {
    const { store, queue, director, connection, began } = this.parts;
    const noop = defineTask("noop", {
      queue,
      payload: z.looseObject({}),
      handler: async (_payload, { occurrence, fence, signal }) => {
        this.attempt = { run: occurrence.run, fence };
        began(occurrence.task, fence);
        await this.handle(signal);
      },
    });
    store.connect = (profile) => {
      if (profile === "patient") return connection;
      this.ears = new Ears();
      return this.ears.client;
    };
    const clock = {
      now: () => director.elapsed,
      after: (ms: number, act: () => void) => {
        const timer = director.timer(act, ms, false);
        return () => void this.timers.delete(timer);
      },
      idle: <T>(wait: Promise<T>) => wait,
    };
    // A start waits until Redis answers, which it always does here.
    store.serverTime = async () => 0;
    // Omits the heartbeat, which would take real time.
    store.registry.beatWorker = async () => {};
    store.registry.workers = async () => [];
    const settings = { captureOutput: false, lockDuration: LOCK_DURATION, concurrency: 1 };
    const options = { types: [noop], store, logger: SILENT, ...settings };
    const worker = new Worker(withWorkerSeams(options, { clock }));
    this.bull = await madeBy(() => director.move(this, () => void worker.start()));
  }
}

/** A plain BullMQ worker, which knows nothing of Carillon. */
export class PlainWorkerActor extends WorkerActor {
  readonly kind = "plain";
  protected readonly bull: BullWorker;

  constructor(name: string, parts: WorkerParts) {
    super(name, parts);
    this.bull = new BullWorker(parts.queue, () => this.handle(), {
      connection: parts.connection,
      prefix: parts.prefix,
      autorun: false,
      lockDuration: LOCK_DURATION,
      maxStalledCount: 100,
    });
    this.bull.on("error", () => {});
  }
}

/** The BullMQ worker that a function starts; it does not run on its own. */
async function madeBy(start: () => Promise<void>): Promise<BullWorker> {
  const { run } = BullWorker.prototype;
  let made: BullWorker | undefined;
  BullWorker.prototype.run = function (this: BullWorker) {
    made = this;
    return Promise.resolve();
  };
  try {
    await start();
  } finally {
    BullWorker.prototype.run = run;
  }
  if (!made) throw new Error("The worker made no worker of BullMQ's.");
  return made;
}
