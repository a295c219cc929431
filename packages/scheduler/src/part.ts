/**
 * Part of a queue that has a due time of its own: a shard, by its number, or one of the store's `PARTS`: runs to
 * reconcile, alerts, digests, expected successes, backfills.
 */
export type Part = string;

/** A part, and when it must be checked. */
export interface Appointment {
  readonly queue: string;
  readonly part: Part;
  readonly at: number;
}

export function isShard(part: Part): boolean {
  return /^\d$/.test(part);
}

export function keyOf(queue: string, part: Part): string {
  return `${queue} ${part}`;
}

/** Shards of a queue that are due within this many ms after one that is due now are visited, and read, with it. */
export const TOGETHER = 1_500;
