import { setTimeout } from "node:timers/promises";
import { Worker as BullWorker, DelayedError, type Job, WaitingChildrenError, WaitingError } from "bullmq";
import { failsForAll } from "../redis/redis-error.js";

/** Wait after the end of a job could not be written, in ms. */
const PAUSE = 1_000;
/** Attempts to write the end of a job. */
const TRIES = 30;
/** Thrown by the processor for a job that it has moved elsewhere: no end must be written. */
const MOVED = [DelayedError, WaitingError, WaitingChildrenError];

/**
 * BullMQ's worker that retries if Redis refuses to end a job (a replica, for a moment). BullMQ itself would fail a
 * completed job, and return a failed one to the queue without counting the attempt.
 */
export class PatientWorker extends BullWorker {
  readonly #closing = new AbortController();

  protected override handleCompleted(...of: Parameters<BullWorker["handleCompleted"]>): Promise<Job> {
    return this.#patiently(() => super.handleCompleted(...of));
  }

  protected override handleFailed(...of: Parameters<BullWorker["handleFailed"]>): Promise<Job> {
    const [error, job] = of;
    // BullMQ then only fetches the next job.
    if (MOVED.some((kind) => error instanceof kind)) return super.handleFailed(...of);
    const traces = [...(job.stacktrace ?? [])];
    return this.#patiently(() => {
      // Each attempt would add the failure to it again.
      job.stacktrace = [...traces];
      return super.handleFailed(...of);
    });
  }

  async #patiently(end: () => Promise<Job>): Promise<Job> {
    for (let tries = 1; ; tries++) {
      try {
        return await end();
      } catch (error) {
        if (tries === TRIES || this.#closing.signal.aborted || !failsForAll(error)) throw error;
        await setTimeout(PAUSE, undefined, { signal: this.#closing.signal }).catch(() => {});
      }
    }
  }

  override close(force?: boolean): Promise<void> {
    this.#closing.abort();
    return super.close(force);
  }

  /**
   * Call it after a `close` that does not end: stops BullMQ's timers and the connection that would keep the process
   * alive.
   */
  async abandon(): Promise<void> {
    await this.lockManager.close();
    // Private, but BullMQ would call it only at the end of its close.
    this["stalledCheckStopper"]?.();
    await this.backend.close(true).catch(() => {});
  }
}
