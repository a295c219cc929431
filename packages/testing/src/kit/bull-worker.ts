import { CarillonError } from "@carillon/core";
import type { Store } from "@carillon/store";
import { Worker as BullWorker, type Job } from "bullmq";
import type { Pulse } from "./pulse.js";
import { Actor, type Stage } from "./stage.js";

/**
 * Locks are real time in Redis. This long, none runs out by itself however slowly a test is stepped through; when one
 * runs out in virtual time is the kit's to say.
 */
export const LOCK_DURATION = 24 * 3_600_000;

/** Between two looks at what BullMQ has no event for, in ms. */
const LOOK = 2;
/** A worker that does not come to rest within this, in ms, never will. */
const GIVE_UP = 10_000;

/** What we use of a worker besides its public face; the only file that knows it. */
interface Internals {
  processFn(job: Job, token?: string, signal?: AbortSignal): Promise<unknown>;
  /** Its wait for a job's marker, while it waits. */
  waiting: Promise<unknown> | null;
  moveStalledJobsToWait(): Promise<void>;
}

/** A BullMQ worker whose jobs take their turns on the stage. */
export class KitBullWorker {
  readonly queue: string;
  /** Since when it takes jobs, in virtual time; undefined: paused. */
  since: number | undefined;
  readonly #bull: BullWorker;
  readonly #internals: Internals;
  readonly #store: Store;
  readonly #stage: Stage;
  readonly #pulse: Pulse;
  readonly #actors = new Set<Actor>();

  constructor(bull: BullWorker, store: Store, stage: Stage, pulse: Pulse, now: number) {
    this.queue = bull.name;
    this.since = now;
    this.#bull = bull;
    this.#internals = bull as unknown as Internals;
    this.#store = store;
    this.#stage = stage;
    this.#pulse = pulse;
    this.#takeTurns();
    const beat = () => pulse.beat();
    bull.on("completed", beat).on("failed", beat).on("error", beat);
  }

  #takeTurns(): void {
    const internals = this.#internals;
    if (!("waiting" in internals) || typeof internals.processFn !== "function") {
      throw new CarillonError("INTERNAL", "this version of BullMQ is not the one that the test kit knows.");
    }
    const process = internals.processFn.bind(this.#bull);
    internals.processFn = async (job, token, signal) => {
      const id = String(job.id);
      const actor = new Actor(`job ${id} (${job.name}) of queue ${this.queue}`, { queue: this.queue, id });
      this.#actors.add(actor);
      try {
        return await this.#stage.perform(actor, () => process(job, token, signal));
      } finally {
        this.#actors.delete(actor);
      }
    };
  }

  /** How many more jobs it would take now. */
  get free(): number {
    return this.since === undefined ? 0 : Math.max(0, this.#bull.concurrency - this.#actors.size);
  }

  /** Ends its wait for a marker: it looks for a job, delayed ones that are due too, by virtual time. */
  async rouse(): Promise<void> {
    const { bull } = this.#store.keys.queue(this.queue);
    await this.#store.link.ask((client) => client.zadd(`${bull}marker`, 0, "0"));
  }

  /** Takes no more jobs; those that it has go on. Call it when all is calm. */
  async pause(): Promise<void> {
    if (this.since === undefined) return;
    this.since = undefined;
    await this.#bull.pause(true);
    const deadline = performance.now() + GIVE_UP;
    // BullMQ leaves a worker in its wait, and gives it one more job after it.
    while (this.#internals.waiting || (this.#actors.size === 0 && this.#bull.isRunning())) {
      if (performance.now() > deadline) {
        throw new CarillonError("CONFLICT", `a worker of queue ${this.queue} could not be paused.`);
      }
      const beats = this.#pulse.count;
      await this.rouse();
      await this.#pulse.after(beats, LOOK);
    }
  }

  async resume(now: number): Promise<void> {
    if (this.since !== undefined) return;
    this.since = now;
    await this.#bull.resume();
  }

  /**
   * The connection drops and nothing more is heard of it; its jobs stay active, as after SIGKILL. Returns their ids.
   * Call it when all is calm: then each handler stands still in a virtual sleep, and stays there.
   */
  async crash(): Promise<string[]> {
    const actors = [...this.#actors];
    this.#stage.freeze(actors);
    await this.end();
    return actors.flatMap(({ job }) => (job ? [job.id] : []));
  }

  /** Without waiting for its jobs. */
  async end(): Promise<void> {
    this.since = undefined;
    await this.#bull.close(true);
  }

  /** BullMQ's own check for stalled jobs, now, as if the locks of these had run out since the last one. */
  async checkStalled(ids: readonly string[]): Promise<void> {
    const { bull, job } = this.#store.keys.queue(this.queue);
    await this.#store.link.ask((client) =>
      client
        .multi()
        .del(`${bull}stalled-check`, ...ids.map((id) => `${job(id)}:lock`))
        .sadd(`${bull}stalled`, ...ids)
        .exec(),
    );
    await this.#internals.moveStalledJobsToWait();
  }
}

/**
 * Opens something that makes BullMQ workers, and returns these: whoever makes them keeps them to itself, and each runs as
 * soon as it is made.
 */
export async function workersMadeBy(
  open: () => Promise<void>,
  adopt: (bull: BullWorker) => void,
): Promise<void> {
  const { run } = BullWorker.prototype;
  BullWorker.prototype.run = function (this: BullWorker) {
    adopt(this);
    return run.call(this);
  };
  try {
    await open();
  } finally {
    BullWorker.prototype.run = run;
  }
}
