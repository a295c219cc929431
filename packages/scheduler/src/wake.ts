import type { RedisClient, Store } from "@carillon/store";

/**
 * Listens for dues that came nearer. Messages may be lost: each time the subscription stands anew, everything is
 * read again.
 */
export class WakeListener {
  readonly #client: RedisClient;

  constructor(store: Store, heard: (queue: string, part: string, at: number) => void, missed: () => void) {
    this.#client = store.connect("subscriber");
    this.#client.on("error", () => {});
    this.#client.on("message", (_channel: string, message: string) => {
      const [queue, part, at] = message.split(" ");
      if (queue && part && Number.isFinite(Number(at))) heard(queue, part, Number(at));
    });
    this.#client.on("ready", () => {
      this.#client.subscribe(store.keys.wake).then(missed, () => {});
    });
  }

  stop(): void {
    this.#client.disconnect();
  }
}
