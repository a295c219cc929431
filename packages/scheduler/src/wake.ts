import type { CarillonError } from "@carillon/core";
import type { Store, Subscription } from "@carillon/store";

export interface WakeEars {
  heard(queue: string, part: string, at: number): void;
  /** The subscription stands anew: messages may have been missed. */
  missed(): void;
  failed(error: CarillonError): void;
}

/** Listens for dues that came nearer. Messages may be lost: each time the subscription stands anew, all is read again. */
export function listenForWakes(store: Store, ears: WakeEars): Subscription {
  return store.subscribe(store.keys.wake, {
    message(text) {
      const [queue, part, at] = text.split(" ");
      if (queue && part && Number.isFinite(Number(at))) ears.heard(queue, part, Number(at));
    },
    standing: () => ears.missed(),
    failed: (error) => ears.failed(error),
  });
}
