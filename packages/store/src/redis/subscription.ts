import type { CarillonError } from "@carillon/core";
import { type RedisClient, redisError } from "./connection.js";

export interface Ears {
  message(text: string): void;
  /** Subscribed, for the first time or again: messages may have been missed. */
  standing(): void;
  /** Refused or not answered; it is retried. */
  failed(error: CarillonError): void;
}

/** Wait before a subscription that was refused or not answered is retried, in ms. */
const TRY_AGAIN = 5_000;
/** Ping interval in ms: a subscriber only listens, and would never notice a dead connection. */
const ASK_EVERY = 20_000;

/** Listens to one channel, over lost connections too. Messages may be lost. */
export class Subscription {
  readonly #client: RedisClient;
  readonly #channel: string;
  readonly #ears: Ears;
  readonly #asking: NodeJS.Timeout;
  #again: NodeJS.Timeout | undefined;
  #stopped = false;

  /** @param client a connection of its own @param askEvery in ms */
  constructor(client: RedisClient, channel: string, ears: Ears, askEvery = ASK_EVERY) {
    this.#client = client;
    this.#channel = channel;
    this.#ears = ears;
    client.on("error", () => {});
    client.on("message", (_channel: string, text: string) => ears.message(text));
    client.on("ready", () => this.#subscribe());
    // Unanswered, the connection ends, and the next one subscribes.
    this.#asking = setInterval(() => void client.ping().catch(() => {}), askEvery).unref();
  }

  #subscribe(): void {
    clearTimeout(this.#again);
    this.#client.subscribe(this.#channel).then(
      () => this.#ears.standing(),
      (error: unknown) => {
        // Without a connection the next one subscribes.
        if (this.#stopped || this.#client.status !== "ready") return;
        this.#ears.failed(redisError(error));
        this.#again = setTimeout(() => this.#subscribe(), TRY_AGAIN);
      },
    );
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#again);
    clearInterval(this.#asking);
    this.#client.disconnect();
  }
}
