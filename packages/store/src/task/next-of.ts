import { type Pending, readyAt } from "@carillon/core/internal";
import type { StoredTask } from "./codec.js";

/**
 * The next timed event of a task; occurrences that wait for the end of a run have no time. Undefined while paused,
 * finished, or held for a move.
 */
export function nextOf({
  state,
  moving,
  nominal,
  due,
  pending,
}: StoredTask): { nominal: number; due: number } | undefined {
  if (state !== "scheduled" || moving !== undefined) return undefined;
  const timed = timesOf(pending);
  if (due !== undefined) timed.push({ nominal: nominal ?? due, due });
  return timed.sort((a, b) => a.due - b.due)[0];
}

/** Pending occurrences with a time of their own: retries, and runs that a handler requested. */
function timesOf(pending: readonly Pending[]): { nominal: number; due: number }[] {
  return pending.flatMap((one) =>
    one.at === undefined ? [] : [{ nominal: one.nominal, due: readyAt(one) }],
  );
}
