import { type RedisClient, redisError, type Store } from "@carillon/store";
import type { ActiveJobs } from "./active.js";
import type { WorkerLogger } from "./options.js";

/** A subscription that was refused or not answered is tried again after, in ms. */
const TRY_AGAIN = 5_000;

/** Hears which runs someone wants to end. Messages may be lost, so `look` asks for those under way. */
export class CancelListener {
  readonly #store: Store;
  readonly #active: ActiveJobs;
  readonly #logger: WorkerLogger;
  readonly #client: RedisClient;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(store: Store, active: ActiveJobs, logger: WorkerLogger) {
    this.#store = store;
    this.#active = active;
    this.#logger = logger;
    this.#client = store.connect("subscriber");
    this.#client.on("error", () => {});
    this.#client.on("message", (_channel: string, message: string) => {
      const [queue, run] = message.split(" ");
      if (queue && run) active.cancel(queue, run);
    });
    this.#client.on("ready", () => this.#subscribe());
  }

  #subscribe(): void {
    clearTimeout(this.#timer);
    this.#client.subscribe(this.#store.keys.cancel).then(
      () => void this.look(),
      (error: unknown) => {
        // Without a connection the next one subscribes.
        if (this.#stopped || this.#client.status !== "ready") return;
        this.#logger.warn({ code: redisError(error).code }, "cancels are not heard at once");
        this.#timer = setTimeout(() => this.#subscribe(), TRY_AGAIN);
      },
    );
  }

  /** Asks Redis about the runs under way; never rejects. */
  async look(): Promise<void> {
    for (const [queue, runs] of this.#active.runs()) {
      try {
        const asked = await this.#store.runs.cancelRequests(queue, runs);
        for (const run of asked) this.#active.cancel(queue, run);
      } catch (error) {
        if (!this.#stopped) this.#logger.warn({ queue, code: redisError(error).code }, "no look for cancels");
      }
    }
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#client.disconnect();
  }
}
