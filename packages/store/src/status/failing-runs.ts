import { ALERTS_QUEUE } from "@carillon/core";
import { causeOf, grouped, type StatusReasonFacts } from "@carillon/core/internal";
import type { Failure } from "../run/failures.js";
import type { StatusScope } from "./queue-reading.js";

/** Runs of a queue that are looked at: the newest ends of this time, in ms. */
const [WITHIN, SAMPLE] = [15 * 60_000, 100];
/** Fewest of them, the share that must have failed, and how many of the newest must not all have succeeded. */
const [LEAST, SHARE, NEWEST] = [5, 0.5, 10];

/**
 * One reason for all queues of which more than half of the newest runs failed, with the cause that most of these have. It ends with the
 * first ten successes, not with the first one.
 */
export async function failingRuns(
  { store, owner }: StatusScope,
  names: readonly string[],
  now: number,
): Promise<StatusReasonFacts[]> {
  // A bound client does not learn how much of others ends.
  if (owner !== undefined) return [];
  const window = { from: now - WITHIN, to: now };
  const read = await Promise.all(
    names.map(async (queue) => {
      // One command for a queue with nothing to do.
      if (queue === ALERTS_QUEUE || (await store.runs.countEnded(queue, window)) < LEAST) return [];
      const all = await store.runs.newestFailures(queue, window, SAMPLE);
      if (all.failed.length <= SHARE * all.looked) return [];
      const newest = await store.runs.newestFailures(queue, window, NEWEST);
      return newest.failed.length > 0 ? [{ queue, ...all }] : [];
    }),
  );
  const failing = read.flat();
  const failed = failing.flatMap((one) => one.failed);
  const [first] = [...causesOf(failed)].sort(([, a], [, b]) => b.length - a.length);
  if (!first) return [];
  const [, [example]] = first as [string, [Failure, ...Failure[]]];
  return [
    {
      code: "RUNS_FAIL",
      queues: failing.map(({ queue }) => queue),
      failed: failed.length,
      ended: failing.reduce((sum, { looked }) => sum + looked, 0),
      cause: { id: first[0], runs: first[1].length, error: example.error.line },
      since: Math.min(...failed.map(({ at }) => at)),
    },
  ];
}

function causesOf(failed: readonly Failure[]): Map<string, Failure[]> {
  return grouped(failed, ({ error }) => causeOf(error.outcome, error.line, error.frame).id);
}
