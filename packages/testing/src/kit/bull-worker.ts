import { CarillonError } from "@carillon/core";
import type { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { Worker as BullWorker, type Job } from "bullmq";
import type { Pulse } from "./pulse.js";
import { Actor, type Stage } from "./stage.js";

/**
 * Locks expire in real time in Redis. With this length none does, however slowly a test is stepped through; the kit decides
 * when one expires in virtual time.
 */
export const LOCK_DURATION = 24 * 3_600_000;

/** Time between two checks for changes that have no BullMQ event, in ms. */
const LOOK = 2;
/** Longest wait for a worker to come to rest, in ms. */
const GIVE_UP = 10_000;

/** The private members of BullMQ's worker that we use; only this file knows them. */
interface Internals {
  processFn(job: Job, token?: string, signal?: AbortSignal): Promise<unknown>;
  /** The pending wait for a job's marker, if it waits. */
  waiting: Promise<unknown> | null;
  moveStalledJobsToWait(): Promise<void>;
}

/** A BullMQ worker whose jobs take their turns on the stage. */
export class KitBullWorker {
  readonly queue: string;
  /** Time since which it takes jobs, in virtual time; undefined while paused. */
  since: number | undefined;
  readonly #internals: Internals;
  readonly #actors = new Set<Actor>();

  constructor(
    private readonly bull: BullWorker,
    private readonly store: Store,
    private readonly stage: Stage,
    private readonly pulse: Pulse,
    now: number,
  ) {
    this.queue = bull.name;
    this.since = now;
    this.#internals = bull as unknown as Internals;
    this.#takeTurns();
    const beat = () => pulse.beat();
    bull.on("completed", beat).on("failed", beat).on("error", beat);
  }

  #takeTurns(): void {
    const internals = this.#internals;
    if (!("waiting" in internals) || typeof internals.processFn !== "function")
      throw new CarillonError("INTERNAL", "the test kit does not support this version of BullMQ.");
    const process = internals.processFn.bind(this.bull);
    internals.processFn = async (job, token, signal) => {
      const id = String(job.id);
      const actor = new Actor(`job ${id} (${job.name}) of queue ${this.queue}`, { queue: this.queue, id });
      this.#actors.add(actor);
      try {
        return await this.stage.perform(actor, () => process(job, token, signal));
      } finally {
        this.#actors.delete(actor);
      }
    };
  }

  /** Number of further jobs that it would take now. */
  get free(): number {
    return this.since === undefined ? 0 : Math.max(0, this.bull.concurrency - this.#actors.size);
  }

  /** Ends its wait for a marker, so that it looks for a job, including delayed ones that are due by virtual time. */
  async rouse(): Promise<void> {
    const { link, keys } = internalsOf(this.store);
    const { bull } = keys.queue(this.queue);
    await link.ask((client) => client.zadd(`${bull}marker`, 0, "0"));
  }

  /** Takes no more jobs; its current ones go on. Call it when all is calm. */
  async pause(): Promise<void> {
    if (this.since === undefined) return;
    this.since = undefined;
    await this.bull.pause(true);
    const deadline = performance.now() + GIVE_UP;
    // BullMQ does not end a worker's wait, and gives it one more job after it.
    while (this.#internals.waiting || (this.#actors.size === 0 && this.bull.isRunning())) {
      if (performance.now() > deadline)
        throw new CarillonError("CONFLICT", `a worker of queue ${this.queue} could not be paused.`);
      const beats = this.pulse.count;
      await this.rouse();
      await this.pulse.after(beats, LOOK);
    }
  }

  async resume(now: number): Promise<void> {
    if (this.since !== undefined) return;
    this.since = now;
    await this.bull.resume();
  }

  /**
   * Drops the connection without a word to Redis; its jobs stay active, as after SIGKILL. Returns their ids.
   * Call it when all is calm: each handler is then in a virtual sleep, and stays there.
   */
  async crash(): Promise<string[]> {
    const actors = [...this.#actors];
    this.stage.freeze(actors);
    await this.end();
    return actors.flatMap(({ job }) => (job ? [job.id] : []));
  }

  /** Closes it without waiting for its jobs. */
  async end(): Promise<void> {
    this.since = undefined;
    await this.bull.close(true);
  }

  /** Runs BullMQ's own check for stalled jobs now, as if the locks of these had expired since the last check. */
  async checkStalled(ids: readonly string[]): Promise<void> {
    const { link, keys } = internalsOf(this.store);
    const { bull, job } = keys.queue(this.queue);
    await link.ask((client) =>
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
 * Runs a function that creates BullMQ workers, and returns these: their creator keeps them private, and each runs as
 * soon as it is created.
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
