import { createHash, randomBytes } from "node:crypto";
import { invalid, quote } from "@carillon/core/internal";
import type { NewBackfill, Store } from "@carillon/store";

/** Backfills stored at a time. */
const CHUNK = 100;
const MINUTE = 60_000;
/** Occurrences a minute. At this pace, the end of the largest batch is still a date. */
const SLOWEST = 0.001;
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/**
 * Paces such that all tasks together run `perMinute`, evenly, and end at the same time: if a task has `n` occurrences,
 * each takes an `n`-th of that time. First steps are spread over it by the golden ratio.
 */
export function paced<One extends { readonly total: number }>(
  all: readonly One[],
  perMinute: number,
): { readonly times: One; readonly every: number; readonly after: number }[] {
  const total = all.reduce((sum, times) => sum + times.total, 0);
  const lasts = (total / perMinute) * MINUTE;
  return all.map((times, i) => {
    const every = Math.max(1, Math.round(lasts / times.total));
    return { times, every, after: Math.floor(every * ((i * GOLDEN) % 1)) };
  });
}

export async function putAll(
  store: Store,
  all: readonly { readonly backfill: NewBackfill; readonly after: number }[],
  turn?: string,
): Promise<void> {
  for (let at = 0; at < all.length; at += CHUNK)
    await Promise.all(
      all.slice(at, at + CHUNK).map(({ backfill, after }) => store.backfills.put(backfill, after, turn)),
    );
}

/** The id of a batch. @param text gives the same id each time; default: a new one */
export function batchId(text?: string): string {
  const bytes = text === undefined ? randomBytes(6) : createHash("sha256").update(text).digest();
  return `b-${bytes.toString("hex").slice(0, 12)}`;
}

/** The id of a backfill that is put once, however often its call is repeated. @param text differs for each backfill */
export function idFrom(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 13);
}

export function isBatch(id: unknown): id is string {
  return typeof id === "string" && /^b-[0-9a-f]{12}$/.test(id);
}

/** @throws `INVALID_OPTION` */
export function assertRate(perMinute: unknown): asserts perMinute is number {
  if (typeof perMinute === "number" && perMinute >= SLOWEST && perMinute <= MINUTE) return;
  const what = perMinute === undefined ? "missing." : `got ${quote(perMinute)}.`;
  throw invalid("perMinute", what, "Give the occurrences a minute of all tasks together, 0.001 to 60000.");
}
