import { setTimeout } from "node:timers/promises";
import { failsForAll } from "@carillon/store";
import { Worker as BullWorker, type Job } from "bullmq";

/** How long it waits after a job could not be taken, or completed, in ms. */
const PAUSE = 1_000;
/** How often it tries to complete a job. */
const TRIES = 30;

/**
 * BullMQ's worker, but where Redis is there and refuses to hand out a job (no memory, a replica, no right to), it waits a moment:
 * BullMQ asks again at once, thousands of times a second, with an error for each. Where Redis refuses to complete one (a replica, for a
 * moment), it tries again: BullMQ would fail the job, and try again what is done.
 */
export class PatientWorker extends BullWorker {
  readonly #closing = new AbortController();

  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await setTimeout(PAUSE, undefined, { signal: this.#closing.signal }).catch(() => {});
      throw error;
    }
  }

  protected override async handleCompleted(...of: Parameters<BullWorker["handleCompleted"]>): Promise<Job> {
    for (let tries = 1; ; tries++) {
      try {
        return await super.handleCompleted(...of);
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
}
