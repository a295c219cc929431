import type { Json, Occurrence } from "@carillon/core";

/** Begins the text that is signed: the signature of an `http.request`, whose body others may choose, is not one of a delivery. */
export const PURPOSE = "deliver:";

/** Body of a request from `deliver` to `serve`: an attempt, and all that its handler may ask. */
export interface Delivery {
  readonly type: string;
  /** As stored; the receiver parses it. */
  readonly payload?: unknown;
  readonly occurrence: Occurrence;
  readonly fence: number;
  readonly attempt: number;
  readonly checkpoint?: Json | undefined;
  /** Milliseconds until the sender gives up. */
  readonly timeLeft: number;
}

/** Outcome of an attempt, for the sender to record. */
export interface Answer {
  readonly outcome?: "partial" | "nothing-to-do" | undefined;
  readonly result?: Json | undefined;
  /** Error that the handler threw, or the reason why it did not run. */
  readonly error?: DeliveryError | undefined;
  /** Lines of `context.log`. */
  readonly log: readonly string[];
  readonly checkpoint?: Json | undefined;
  /** UTC ms. */
  readonly nextAt?: number | undefined;
}

export interface DeliveryError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly permanent?: boolean | undefined;
}
