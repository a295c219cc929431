import type { CarillonError } from "@carillon/core";
import { type RedisClient, redisError } from "./connection.js";

export interface Ears {
  message(text: string): void;
  /** The subscription stands, for the first time or anew: messages may have been missed. */
  standing(): void;
  /** Refused or not answered; it is tried again. */
  failed(error: CarillonError): void;
}

/** A subscription that was refused or not answered is tried again after, in ms. */
const TRY_AGAIN = 5_000;
/** A subscriber only listens: it would never notice that nobody can be heard any more. In ms. */
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
