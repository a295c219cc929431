import { type Logger, redisError, type Store, type Subscription } from "@carillon/store";
import type { ActiveJobs } from "./active.js";

/** Receives the cancels of runs. Messages may be lost, so `poll` also reads the runs in progress. */
export class CancelListener {
  readonly #subscription: Subscription;
  #stopped = false;

  constructor(
    private readonly store: Store,
    private readonly active: ActiveJobs,
    private readonly logger: Logger,
  ) {
    active.onMissed = () => void this.poll();
    this.#subscription = store.listen("cancel", {
      message(text) {
        const [queue, run] = text.split(" ");
        if (queue && run) active.cancel(queue, run);
      },
      standing: () => void this.poll(),
      failed: ({ code }) => logger.warn({ code }, "cancel messages are unavailable, polling instead"),
    });
  }

  /** Polls Redis for cancels of the runs in progress; never rejects. */
  async poll(): Promise<void> {
    for (const [queue, runs] of this.active.runs()) {
      try {
        const asked = await this.store.runs.cancelRequests(queue, runs);
        for (const run of asked) this.active.cancel(queue, run);
      } catch (error) {
        if (!this.#stopped)
          this.logger.warn({ queue, code: redisError(error).code }, "could not check for cancelled runs");
      }
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#subscription.stop();
  }
}
