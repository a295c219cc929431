import type { Outcome } from "@carillon/core";
import { assertOptions } from "@carillon/core/internal";
import type { ShortRun } from "@carillon/store";
import { wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";

export interface SummaryOptions {
  /** Length of the time up to now, in ms; default an hour, at most 7 days. */
  readonly within?: number | undefined;
}

/** Percentiles in ms. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** The runs that ended in a recent time. Times in UTC ms of Redis time. */
export interface RunSummary {
  readonly from: number;
  readonly to: number;
  /** Number that ended. For a bound client: those among `read`. */
  readonly ended: number;
  /** Number of the newest runs that all figures below come from, at most 1,000. */
  readonly read: number;
  readonly outcomes: Partial<Record<Outcome, number>>;
  /** Delays of their enqueuing, waits for a worker, and durations; absent: none of them has it. */
  readonly lateMs?: Percentiles;
  readonly waitMs?: Percentiles;
  readonly durationMs?: Percentiles;
}

const HOUR = 3_600_000;
/** Runs whose records are read. */
const MOST = 1_000;

/** @throws `INVALID_OPTION` */
export async function summarize(scope: Scope, options: SummaryOptions): Promise<RunSummary> {
  assertOptions(options, ["within"]);
  const within = wholeNumber(options.within ?? HOUR, "within", 1_000, 168 * HOUR);
  const { store, owner } = scope;
  const [to, queues] = await Promise.all([store.serverTime(), scope.queues()]);
  const window = { from: to - within, to };
  const found = await Promise.all(
    queues.map(async (queue) => {
      const [ended, newest] = await Promise.all([
        store.runs.countEnded(queue, window),
        store.runs.journal(queue, window, MOST, 0),
      ]);
      return { queue, ended, newest };
    }),
  );
  const newest = found
    .flatMap(({ queue, newest }) => newest.map((run) => ({ queue, ...run })))
    .sort((a, b) => b.at - a.at)
    .slice(0, MOST);
  const records = await Promise.all(
    queues.map((queue) =>
      store.runs.brief(
        queue,
        newest.filter((run) => run.queue === queue).map(({ id }) => id),
      ),
    ),
  );
  const runs = records.flat().filter((run) => owner === undefined || run.task.owner === owner);
  const all = found.reduce((sum, { ended }) => sum + ended, 0);
  return {
    ...window,
    ended: owner === undefined ? all : runs.length,
    read: runs.length,
    outcomes: outcomesOf(runs),
    ...percentiles("lateMs", runs, ({ lateMs }) => lateMs),
    ...percentiles("waitMs", runs, ({ waitMs }) => waitMs),
    ...percentiles("durationMs", runs, ({ started, finished }) =>
      started === undefined || finished === undefined ? undefined : Math.max(0, finished - started),
    ),
  };
}

function outcomesOf(runs: readonly ShortRun[]): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const { outcome } of runs) if (outcome) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** By the nearest rank. */
function percentiles<Name extends string>(
  name: Name,
  runs: readonly ShortRun[],
  of: (run: ShortRun) => number | undefined,
): Partial<Record<Name, Percentiles>> {
  const sorted = runs.flatMap((run) => of(run) ?? []).sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  if (sorted.length === 0) return {};
  return { [name]: { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) } } as Record<Name, Percentiles>;
}
