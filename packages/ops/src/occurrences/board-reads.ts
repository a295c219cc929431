import { SKIP_REASONS, type SkipReason, type TaskName } from "@carillon/core";
import { parseLocalName } from "@carillon/core/internal";
import type { ShortRun } from "@carillon/store";
import type { Call } from "../operation.js";

/** A run, and the number of runs that it stands for. */
export interface SampledRun {
  readonly run: ShortRun;
  readonly stands: number;
}

export interface BoardSkip {
  readonly task: TaskName;
  readonly reason: SkipReason;
  /** Nominal times, both included; several skips in a row are one. */
  readonly from: number;
  readonly to: number;
  readonly at: number;
}

interface Past {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** Open runs of a queue that are read. */
const MOST_OPEN = 50;

/**
 * The runs of a time by their end, and those that are open. If they are more than `most`, a queue with more than its share is read evenly over the time: two
 * commands for each step, and each run stands for those around it.
 */
export async function readRuns(
  { store }: Call,
  queues: readonly string[],
  past: Past,
  most: number,
): Promise<SampledRun[]> {
  const totals = await Promise.all(queues.map((queue) => store.runs.countEnded(queue, past)));
  const total = totals.reduce((sum, count) => sum + count, 0);
  const share = total <= most ? most : Math.max(1, Math.floor(most / queues.length));
  const steps: Pick<Past, "from" | "to">[] = [];
  for (let from = past.from; from <= past.to; from += past.step)
    steps.push({ from, to: Math.min(past.to, from + past.step - 1) });
  const read = await Promise.all(
    queues.map(async (queue, n): Promise<SampledRun[]> => {
      const ended = totals[n] ?? 0;
      const [held, waiting] = await Promise.all([
        store.queues.held(queue, MOST_OPEN),
        store.queues.waiting(queue, MOST_OPEN),
      ]);
      const windows = ended <= share ? [past] : steps;
      const counts =
        ended <= share
          ? [ended]
          : await Promise.all(windows.map((window) => store.runs.countEnded(queue, window)));
      const each = Math.max(1, Math.floor(share / counts.filter((count) => count > 0).length));
      const found = await Promise.all(
        windows.map(async (window, i) => {
          const all = counts[i] ?? 0;
          const ids = all === 0 ? [] : await store.runs.journal(queue, window, each, 0);
          return ids.map(({ id }) => ({ id, stands: all / ids.length }));
        }),
      );
      const sampled = new Map(found.flat().map(({ id, stands }) => [id, stands]));
      for (const id of [...held, ...waiting]) if (!sampled.has(id)) sampled.set(id, 1);
      const runs = await store.runs.brief(queue, [...sampled.keys()]);
      return runs
        .filter(({ nominal, finished }) => finished !== undefined || nominal >= past.from)
        .map((run) => ({ run, stands: sampled.get(run.id) ?? 1 }));
    }),
  );
  return read.flat();
}

const REASONS = new Set<string>(SKIP_REASONS);

/** The newest skips that touch a time. */
export async function readSkips(
  { store }: Call,
  queues: readonly string[],
  { from, to }: Pick<Past, "from" | "to">,
): Promise<BoardSkip[]> {
  const found = await Promise.all(queues.map((queue) => store.runs.skips(queue)));
  return found.flatMap((skips, i) =>
    skips
      .filter((skip) => skip.to >= from && skip.from <= to && REASONS.has(skip.reason))
      .map(({ local, reason, ...times }) => ({
        task: { queue: queues[i] as string, ...parseLocalName(local) },
        reason: reason as SkipReason,
        ...times,
      })),
  );
}
