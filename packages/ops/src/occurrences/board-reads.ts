import { SKIP_REASONS, type SkipReason, type TaskName } from "@carillon/core";
import { localName, parseLocalName } from "@carillon/core/internal";
import type { ShortRun, Timing } from "@carillon/store";
import { decodeChange } from "../changes/list.js";
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

/** Runs, and tasks of all queues, that are read for one board. */
const [MOST_RUNS, MOST_TASKS] = [1_000, 1_000];
/** Entries of the change log that are read. */
const CHANGES = 200;
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
async function readSkips(
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

/** Some tasks of a queue, which stand for all that match. */
export interface Sample {
  readonly queue: string;
  readonly all: number;
  readonly names: readonly TaskName[];
  readonly timings: readonly Timing[];
}

/** Tasks that a board is narrowed to. */
interface Only {
  readonly owner?: string | undefined;
  readonly tag?: string | undefined;
}

/** The newest changes that a caller may see: one that is bound to an owner, those of the owner, and of queues. */
async function readLog({ store, owner }: Call, queues: readonly string[]) {
  const found = (await store.changes.page(undefined, CHANGES)).flatMap((one) => decodeChange(one) ?? []);
  if (owner === undefined) return found;
  return found.filter(
    ({ kind, scope }) =>
      scope.owner === owner || (kind === "queue.resume" && queues.includes(scope.queue ?? "")),
  );
}

export async function readBoard(
  call: Call,
  queues: readonly string[],
  { owner, tag }: Only,
  past: Past & { readonly now: number },
) {
  const { store } = call;
  const each = Math.ceil(MOST_TASKS / Math.max(1, queues.length));
  const ofEach = <Read>(read: (queue: string) => Promise<Read>) => Promise.all(queues.map(read));
  const [runs, skips, samples, overdue, states, log, nodes, workers] = await Promise.all([
    readRuns(call, queues, past, MOST_RUNS),
    readSkips(call, queues, past),
    ofEach(async (queue): Promise<Sample> => {
      const { locals, ...rest } = await store.tasks.sample({ queue, owner, tag }, each);
      return { queue, ...rest, names: locals.map((local) => ({ queue, ...parseLocalName(local) })) };
    }),
    ofEach(async (queue) => {
      const due = await store.tasks.due(queue, past.to, MOST_TASKS);
      const late = due.filter(({ at }) => at >= past.from && at < past.now - LATE_MS);
      return late.map(({ local, at }) => ({ task: { queue, ...parseLocalName(local) }, at }));
    }),
    ofEach(async (queue) => ({ queue, paused: (await store.queues.state(queue))?.paused })),
    readLog(call, queues),
    call.owner === undefined ? store.registry.nodes() : [],
    call.owner === undefined ? store.registry.workers() : [],
  ]);
  return { runs, skips, samples, overdue: overdue.flat(), states, log, nodes, workers };
}

export type BoardReads = Awaited<ReturnType<typeof readBoard>>;

/** The runs, skips and overdue occurrences of the tasks that are shown, and the tags of these. */
export async function shownOf(
  call: Call,
  { runs, skips, overdue }: BoardReads,
  { owner, tag }: Only,
  withTags: boolean,
) {
  const tagsOf = await readTags(call, withTags || tag !== undefined, [
    ...runs.map(({ run }) => run.task),
    ...skips.map(({ task }) => task),
    ...overdue.map(({ task }) => task),
  ]);
  const isShown = (task: TaskName) =>
    (owner === undefined || task.owner === owner) && (tag === undefined || tagsOf(task).includes(tag));
  return {
    runs: runs.filter(({ run }) => isShown(run.task)),
    skips: skips.filter(({ task }) => isShown(task)),
    overdue: overdue.filter(({ task }) => isShown(task)),
    tagsOf,
  };
}

/** An occurrence that is due for longer than this is overdue. */
const LATE_MS = 1_000;

async function readTags(
  { store }: Call,
  isNeeded: boolean,
  tasks: readonly TaskName[],
): Promise<(task: TaskName) => readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const queues = isNeeded ? new Set(tasks.map(({ queue }) => queue)) : [];
  await Promise.all(
    [...queues].map(async (queue) => {
      const locals = [...new Set(tasks.filter((task) => task.queue === queue).map(localName))];
      const tags = await store.tasks.tags(queue, locals);
      for (const [i, local] of locals.entries()) found.set(`${queue} ${local}`, tags[i] ?? []);
    }),
  );
  return (task) => found.get(`${task.queue} ${localName(task)}`) ?? [];
}
