import { parseDuration, type RetryInput } from "@carillon/core";
import { fromZod, invalid, policySchema } from "@carillon/core/internal";
import { z } from "zod";
import type { JobBackoff } from "./backoff.js";

export interface ItemRetry {
  readonly attempts: number;
  readonly backoff: JobBackoff;
}

/** The same as a task's `retry`. */
const schema = z.object({ itemRetry: policySchema.shape.retry });

const NONE = { attempts: 1, backoff: "exponential", delay: "1s", max: "1h" } as const;

/** @throws `INVALID_OPTION`, `INVALID_DURATION` */
export function itemRetry(input: RetryInput | undefined): ItemRetry {
  const parsed = schema.safeParse({ itemRetry: input });
  if (!parsed.success) throw fromZod(parsed.error, "INVALID_OPTION");
  const { attempts, backoff, delay, max } = parsed.data.itemRetry ?? NONE;
  return {
    attempts,
    backoff: { type: "carillon", kind: backoff, delay: parseDuration(delay), max: parseDuration(max) },
  };
}

/** @throws `INVALID_OPTION` */
function whole(value: number, field: string, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw invalid(field, `got ${String(value)}.`, `Give a whole number from 1 to ${most}.`);
}

interface FanOutLike {
  generate?: unknown;
  process?: unknown;
  handler?: unknown;
  concurrency?: number | undefined;
  itemRetry?: RetryInput | undefined;
}

/** @throws `INVALID_OPTION` */
export function assertFanOut(options: FanOutLike): void {
  for (const field of ["generate", "process"] as const) {
    if (typeof options[field] === "function") continue;
    throw invalid(field, "not a function.", "Give both generate and process.");
  }
  if (options.handler !== undefined)
    throw invalid(
      "handler",
      "cannot be combined with generate and process.",
      "Give the handler, or generate and process.",
    );
  if (options.concurrency !== undefined) whole(options.concurrency, "concurrency", 10_000);
  itemRetry(options.itemRetry);
}
