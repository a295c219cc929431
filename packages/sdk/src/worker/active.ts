import type { WorkerRun } from "@carillon/store";
import type { Output } from "./output.js";
import type { TimeBox } from "./time-box.js";

/** An attempt that is under way in this worker, of a run or of one of its items. */
export interface Active {
  readonly queue: string;
  readonly run: string;
  /** `owner/id`. */
  readonly task: string;
  /** The BullMQ job's id: the run's, or the item's own. */
  readonly job: string;
  /** From 1; 0 for a run whose start is not recorded yet. */
  attempt: number;
  readonly box: TimeBox;
  readonly output: Output;
  /** Undefined: it is a run, not an item. */
  readonly item?: { readonly index: number; readonly token: string };
  /** The newest save of its output, until it is answered. */
  saving?: Promise<void> | undefined;
  /** Whether its code has ended and its end is being recorded. */
  ending?: boolean;
}

/** Most runs that a worker names in its heartbeat. */
const MOST_NAMED = 20;
/** Number of cancelled runs that are remembered. */
const MOST_MISSED = 1_000;

/** All current attempts, so that they can be cancelled or aborted. */
export class ActiveJobs implements Iterable<Active> {
  readonly #jobs = new Set<Active>();
  /**
   * Cancelled runs that are not here. One may still arrive, because its start is recorded before this worker learns of
   * it.
   */
  readonly #missed = new Set<string>();
  /** Called when such a run arrives. */
  onMissed: () => void = () => {};
  #stopped = false;

  get size(): number {
    return this.#jobs.size;
  }

  [Symbol.iterator](): Iterator<Active> {
    return this.#jobs.values();
  }

  /** Returns a function that removes it. */
  enter(job: Active): () => void {
    this.#jobs.add(job);
    if (this.#stopped) job.box.stop();
    if (this.#missed.delete(`${job.queue} ${job.run}`)) this.onMissed();
    return () => this.#jobs.delete(job);
  }

  /** Whether an attempt at this job is still running here, or its end is being recorded. */
  isWorked(queue: string, job: string): boolean {
    for (const one of this.#jobs) {
      if (one.queue === queue && one.job === job && (one.box.atWork || one.ending)) return true;
    }
    return false;
  }

  /** Whether the code of any attempt is running here. */
  get atWork(): boolean {
    for (const { box } of this.#jobs) if (box.atWork) return true;
    return false;
  }

  /** Handles a cancel of a run: its handler or its items end. */
  cancel(queue: string, run: string): void {
    let found = false;
    for (const one of this.#jobs) {
      if (one.queue !== queue || one.run !== run) continue;
      one.box.cancel();
      found = true;
    }
    if (found) return;
    if (this.#missed.size >= MOST_MISSED) this.#missed.clear();
    this.#missed.add(`${queue} ${run}`);
  }

  /** Handles the loss of a job's lock: another worker will take the job over, so this attempt must end. */
  lose(queue: string, job: string): void {
    for (const one of this.#jobs) if (one.queue === queue && one.job === job) one.box.lose();
  }

  /** Aborts all current attempts, and every later one. */
  stop(): void {
    this.#stopped = true;
    for (const one of this.#jobs) one.box.stop();
  }

  /** Number of runs in progress here, and the first of them. @param which default: all */
  underWay(which: (box: TimeBox) => boolean = () => true): { count: number; runs: WorkerRun[] } {
    const runs = new Map<string, WorkerRun>();
    for (const { queue, run, task, box } of this.#jobs)
      if (which(box)) runs.set(`${queue} ${run}`, { run, queue, task });
    return { count: runs.size, runs: [...runs.values()].slice(0, MOST_NAMED) };
  }

  /** Runs in progress, by queue. */
  runs(): Map<string, string[]> {
    const runs = new Map<string, Set<string>>();
    for (const { queue, run } of this.#jobs) runs.set(queue, (runs.get(queue) ?? new Set()).add(run));
    return new Map([...runs].map(([queue, ids]) => [queue, [...ids]]));
  }
}
