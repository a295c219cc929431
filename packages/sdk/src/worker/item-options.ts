import { BACKOFFS, type Backoff, CarillonError, type Duration } from "@carillon/core";
import { assertOptions, durationOption, MAX_DURATION } from "@carillon/core/internal";
import type { JobBackoff } from "./backoff.js";

/** Wait between the attempts of an item. */
export interface ItemBackoff {
  /** Default `exponential`. */
  kind?: Backoff | undefined;
  /** The first wait, a duration; default `1s`. */
  delay?: Duration | undefined;
  /** No wait is longer; default `1h`. */
  max?: Duration | undefined;
}

/** Retry settings of an item, as job options. */
export interface ItemRetry {
  readonly attempts: number;
  readonly backoff: JobBackoff;
}

/** @throws `INVALID_OPTION` */
export function itemRetry(
  attempts = 1,
  { kind = "exponential", delay = "1s", max = "1h" }: ItemBackoff = {},
): ItemRetry {
  whole(attempts, "itemAttempts", 100);
  if (!BACKOFFS.includes(kind)) {
    throw new CarillonError("INVALID_OPTION", "unknown.", {
      field: "itemBackoff.kind",
      remedy: `Give one of ${BACKOFFS.join(", ")}.`,
    });
  }
  const backoff: JobBackoff = {
    type: "carillon",
    kind,
    delay: durationOption(delay, "itemBackoff.delay", 1, MAX_DURATION),
    max: durationOption(max, "itemBackoff.max", 1, MAX_DURATION),
  };
  return { attempts, backoff };
}

/** @throws `INVALID_OPTION` */
function whole(value: number, field: string, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw new CarillonError("INVALID_OPTION", `got ${String(value)}.`, {
    field,
    remedy: `Give a whole number from 1 to ${most}.`,
  });
}

interface FanOutLike {
  generate?: unknown;
  process?: unknown;
  handler?: unknown;
  concurrency?: number | undefined;
  itemAttempts?: number | undefined;
  itemBackoff?: ItemBackoff | undefined;
}

/** @throws `INVALID_OPTION` */
export function assertFanOut(options: FanOutLike): void {
  for (const field of ["generate", "process"] as const) {
    if (typeof options[field] === "function") continue;
    throw new CarillonError("INVALID_OPTION", "not a function.", {
      field,
      remedy: "Give both generate and process.",
    });
  }
  if (options.handler !== undefined) {
    throw new CarillonError("INVALID_OPTION", "given beside generate and process.", {
      field: "handler",
      remedy: "Give the handler, or generate and process.",
    });
  }
  if (options.concurrency !== undefined) whole(options.concurrency, "concurrency", 10_000);
  if (options.itemBackoff !== undefined) assertOptions(options.itemBackoff, BACKOFF_OPTIONS, "itemBackoff");
  itemRetry(options.itemAttempts, options.itemBackoff);
}

const BACKOFF_OPTIONS = ["kind", "delay", "max"] as const satisfies (keyof ItemBackoff)[];
