import type { CarillonError } from "@carillon/core";
import { type RedisClient, redisError, type Store } from "@carillon/store";

export interface WakeEars {
  heard(queue: string, part: string, at: number): void;
  /** The subscription stands anew: messages may have been missed. */
  missed(): void;
  failed(error: CarillonError): void;
}

/** A subscription that was refused or not answered is tried again after, in ms. */
const TRY_AGAIN = 5_000;

/**
 * Listens for dues that came nearer. Messages may be lost: each time the subscription stands anew, everything is
 * read again.
 */
export class WakeListener {
  readonly #client: RedisClient;
  readonly #channel: string;
  readonly #ears: WakeEars;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(store: Store, ears: WakeEars) {
    this.#client = store.connect("subscriber");
    this.#channel = store.keys.wake;
    this.#ears = ears;
    this.#client.on("error", () => {});
    this.#client.on("message", (_channel: string, message: string) => {
      const [queue, part, at] = message.split(" ");
      if (queue && part && Number.isFinite(Number(at))) ears.heard(queue, part, Number(at));
    });
    this.#client.on("ready", () => this.#subscribe());
  }

  #subscribe(): void {
    clearTimeout(this.#timer);
    this.#client.subscribe(this.#channel).then(
      () => this.#ears.missed(),
      (error: unknown) => {
        // Without a connection the next one subscribes.
        if (this.#stopped || this.#client.status !== "ready") return;
        this.#ears.failed(redisError(error));
        this.#timer = setTimeout(() => this.#subscribe(), TRY_AGAIN);
      },
    );
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#client.disconnect();
  }
}
