import { type Duration, OUTCOMES, type Outcome } from "@carillon/core";
import { durationOption } from "@carillon/core/internal";
import type { ShortRun } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, duration, time } from "../shapes.js";
import { percentile } from "./figures.js";

interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

const HOUR = 3_600_000;
/** Runs whose records are read. */
const MOST = 1_000;

const percentiles = z
  .object({ p50: count, p95: count, p99: count, max: count })
  .optional()
  .describe("In ms. Missing: none of the runs has it.");

export const summary = operation({
  http: "GET /runs/summary",
  role: "viewer",
  reach: "owner",
  summary:
    "Counts the runs that ended in the last hour, or in another recent time, by outcome, and says how late they were.",
  input: z.strictObject({
    within: duration.optional().describe("1 s to 7 days, or milliseconds. Default: `1h`."),
  }),
  output: z.object({
    from: time,
    to: time,
    ended: count.describe("Number that ended. For a bound caller: those among `read`."),
    read: count.describe("Number of the newest runs that all other figures come from, at most 1,000."),
    outcomes: z.partialRecord(z.enum(OUTCOMES), count),
    lateMs: percentiles.describe("Delay of their enqueuing."),
    waitMs: percentiles.describe("Wait for a worker."),
    durationMs: percentiles,
  }),
  async run({ scope, store, owner }, input) {
    const within = durationOption(input.within as Duration | undefined, "within", 1_000, 168 * HOUR) ?? HOUR;
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
      ...spread("lateMs", runs, ({ lateMs }) => lateMs),
      ...spread("waitMs", runs, ({ waitMs }) => waitMs),
      ...spread("durationMs", runs, ({ started, finished }) =>
        started === undefined || finished === undefined ? undefined : Math.max(0, finished - started),
      ),
    };
  },
});

function outcomesOf(runs: readonly ShortRun[]): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const { outcome } of runs) if (outcome) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

function spread<Name extends string>(
  name: Name,
  runs: readonly ShortRun[],
  of: (run: ShortRun) => number | undefined,
): Partial<Record<Name, Percentiles>> {
  const sorted = runs.flatMap((run) => of(run) ?? []).sort((a, b) => a - b);
  const at = (share: number) => percentile(sorted, share) ?? 0;
  if (sorted.length === 0) return {};
  return { [name]: { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) } } as Record<Name, Percentiles>;
}
