import { setTimeout } from "node:timers/promises";
import { Worker as BullWorker, type Job } from "bullmq";

/** How long it waits after a job could not be taken, in ms. */
const PAUSE = 1_000;

/**
 * BullMQ's worker, but where Redis is there and refuses to hand out a job (no memory, a replica, no right to), it waits a moment:
 * BullMQ asks again at once, thousands of times a second, with an error for each.
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

  override close(force?: boolean): Promise<void> {
    this.#closing.abort();
    return super.close(force);
  }
}
