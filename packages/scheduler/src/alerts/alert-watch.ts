import { ALERTS_QUEUE } from "@carillon/core";
import type { Store } from "@carillon/store";
import type { Settings } from "../options.js";

/** Time between two checks, and how long an alert may wait for a worker, in ms. */
const MINUTE = 60_000;

/** Warns while alerts wait for a worker that delivers them; otherwise nobody would notice. */
export class AlertWatch {
  readonly #store: Store;
  readonly #settings: Settings;
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor(store: Store, settings: Settings) {
    this.#store = store;
    this.#settings = settings;
  }

  /** Checks at most once a minute. @param now UTC ms of Redis time */
  async check(now: number): Promise<void> {
    if (Math.abs(now - this.#checkedAt) < MINUTE) return;
    this.#checkedAt = now;
    // Also those of a paused queue.
    const { waiting = 0, oldestWaitingMs: oldest = 0 } = (await this.#store.queues.state(ALERTS_QUEUE)) ?? {};
    if (oldest < MINUTE) return;
    const details = { queue: ALERTS_QUEUE, waiting, oldest };
    this.#settings.logger.warn(details, "alerts wait for a worker with alertWebhook");
  }
}
