import type { CarillonError } from "@carillon/core";
import type { Store, Subscription } from "@carillon/store";

export interface WakeEars {
  received(queue: string, part: string, at: number): void;
  /** Subscribed again: messages may have been missed. */
  missed(): void;
  failed(error: CarillonError): void;
}

/** Listens for earlier due times. Messages may be lost, so everything is read again after each new subscription. */
export function listenForWakes(store: Store, ears: WakeEars): Subscription {
  return store.listen("wake", {
    message(text) {
      const [queue, part, at] = text.split(" ");
      if (queue && part && Number.isFinite(Number(at))) ears.received(queue, part, Number(at));
    },
    standing: () => ears.missed(),
    failed: (error) => ears.failed(error),
  });
}
