import { OUTCOMES, SKIP_REASONS, type TaskName } from "@carillon/core";
import {
  assertName,
  durationOption,
  FAILURES,
  type Freeze,
  frozenAt,
  invalid,
  localName,
  nextFreeze,
  parseLocalName,
} from "@carillon/core/internal";
import { roundedInstant } from "@carillon/sdk/internal";
import type { QueuePause, ShortRun, StoredChange } from "@carillon/store";
import { z } from "zod";
import { decodeChange } from "../changes/list.js";
import { mayRead } from "../freezes/freeze.js";
import { type Call, operation } from "../operation.js";
import { count, duration, given, instant, oneOf, taskName, time } from "../shapes.js";
import { BoardGrid, MARKS } from "./board-grid.js";
import { readRuns, readSkips } from "./board-reads.js";
import { emptyLoad } from "./load.js";
import { TimeSlice } from "./time-slice.js";

const marks = z.object(
  Object.fromEntries(MARKS.map((mark) => [mark, count.optional()])) as Record<
    (typeof MARKS)[number],
    z.ZodOptional<typeof count>
  >,
);
const runOnBoard = z.object({
  run: z.string(),
  task: taskName,
  nominal: time,
  outcome: z.enum(OUTCOMES).optional().describe("Missing: it is not over."),
  started: time.optional(),
  finished: time.optional(),
  lateMs: count.optional().describe("Delay of its enqueuing."),
  waitMs: count.optional().describe("Wait for a worker."),
  durationMs: count.optional(),
});
const board = z.object({
  now: time,
  ...{ from: time, to: time },
  step: count.describe("Length of a cell, in ms."),
  by: z.enum(["queue", "owner", "tag", "task"]),
  tasks: count.describe("Number of tasks that the rows stand for."),
  rows: z
    .array(
      z.object({
        name: z.string().describe("The queue, the owner, the tag or `owner/id`; empty: tasks without a tag."),
        task: taskName.optional().describe("If rows are tasks."),
        cells: z.array(marks.extend({ i: count.describe("Number of the cell, from 0.") })),
      }),
    )
    .describe(
      "At most 30: those with most faults, then those with most occurrences; in the order of their names.",
    ),
  hidden: count.describe("Number of further rows."),
  bands: z
    .array(
      z.object({
        kind: z.enum(["freeze", "queue-paused", "task-paused"]),
        from: time,
        to: time.optional().describe("Missing: until somebody ends it."),
        ...{ queue: z.string().optional(), owner: z.string().optional(), tag: z.string().optional() },
        ...{ id: z.string().optional(), by: z.string().optional(), note: z.string().optional() },
      }),
    )
    .describe("Times in which a freeze or a pause holds; it concerns all tasks with these fields."),
  events: z
    .array(
      z.object({
        kind: z.enum(["deploy", "node", "worker"]),
        at: time,
        name: z.string().describe("The set of tasks that was applied, or the process that started."),
        by: z.string().optional(),
      }),
    )
    .describe("Sets of tasks that were applied, and starts of nodes and workers."),
  ended: z.array(count).describe("Runs that ended in each cell."),
  lateMs: z
    .array(count)
    .describe("In each cell, the delay that 95 of 100 starts kept to: enqueuing and wait for a worker."),
  sums: z
    .object({
      ...{ ended: count, late: count, failed: count, skipped: count, missed: count },
      doubled: count.describe("Occurrences of schedules that were enqueued a second time."),
      read: count.describe("Number of runs that were read; fewer than `ended`: they stand for all."),
    })
    .describe("Of the time up to now."),
  runs: z.object({
    newest: z.array(runOnBoard),
    slowest: z.array(runOnBoard),
    failed: z.array(runOnBoard),
  }),
  skips: z.array(
    z.object({
      task: taskName,
      reason: z.enum(SKIP_REASONS),
      ...{ from: time, to: time, at: time },
    }),
  ),
});

const HOUR = 3_600_000;
const MOST_CELLS = 300;
const MOST_ROWS = 30;
/** Up to this many tasks, a row is a task. */
const FEW = 24;
/** Runs, and tasks of all queues, that are read for one answer. */
const [MOST_RUNS, MOST_TASKS] = [1_000, 1_000];
/** Steps of schedules for one answer. */
const MOST_STEPS = 300_000;
/** Length of each list. */
const LISTED = 8;
/** Entries of the change log that are read. */
const CHANGES = 200;

/**
 * Runs are those whose records are kept. If there are more than 1,000 in the time, as many are read, evenly over it, and stand for all. Skips
 * are the newest of each queue. Planned times come from the schedules, as they are now, of at most about 1,000 tasks.
 */
export const boardOf = operation({
  http: "GET /board",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary:
    "Shows groups of tasks over time: planned and actual occurrences in each cell, before and after now, and what held them.",
  input: z.strictObject({
    from: instant.optional().describe("Default: 6 hours ago."),
    to: instant.optional().describe("Default: 12 hours after `from`."),
    step: duration.optional().describe("Length of a cell, at least 1 s; at most 300 cells. Default: 5m."),
    by: oneOf(["queue", "owner", "tag", "task"])
      .optional()
      .describe(
        "The rows. Default: tasks if there are at most 24, or queues if there are several, or owners.",
      ),
    ...{ queue: given.optional(), owner: given.optional(), tag: given.optional() },
  }),
  output: board,
  async run(call, input) {
    const { scope, store } = call;
    const { queue, owner, tag } = scope.bind(input);
    for (const [field, value] of Object.entries({ queue, owner, tag })) {
      if (value !== undefined) assertName(value, field);
    }
    const step = durationOption((input.step ?? "5m") as never, "step", 1_000, 24 * HOUR) as number;
    const queues = await scope.queuesOf(queue);
    const [now, freezes] = await Promise.all([
      queues[0] === undefined ? store.serverTime() : store.tasks.time(queues[0]),
      store.freezes.list(),
      store.calendars.refresh(),
    ]);
    const start = input.from === undefined ? now - 6 * HOUR : roundedInstant(input.from, "from");
    const end = input.to === undefined ? start + 12 * HOUR : roundedInstant(input.to, "to");
    if (end <= start) throw invalid("to", "not after from.", "Give a later time.");
    const from = Math.floor(start / step) * step;
    const size = Math.ceil((end - from) / step);
    if (size > MOST_CELLS)
      throw invalid("step", `more than ${MOST_CELLS} cells.`, "Give a longer step, or a shorter time.");
    const range = { from, to: from + size * step, step, size };
    const past = { from, to: Math.min(now, range.to - 1) };
    const each = Math.ceil(MOST_TASKS / Math.max(1, queues.length));
    const [runs, skips, samples, dues, log, states, processes] = await Promise.all([
      readRuns(call, queues, { ...past, step }, MOST_RUNS),
      readSkips(call, queues, past),
      Promise.all(queues.map((name) => store.tasks.sample({ queue: name, owner, tag }, each))),
      Promise.all(queues.map((name) => store.tasks.due(name, past.to, MOST_TASKS))),
      store.changes.page(undefined, CHANGES),
      Promise.all(queues.map((name) => store.queues.state(name))),
      call.owner === undefined ? Promise.all([store.registry.nodes(), store.registry.workers()]) : undefined,
    ]);
    const tasks = samples.reduce((sum, { all }) => sum + all, 0);
    const by = input.by ?? (tasks <= FEW ? "task" : queues.length > 1 ? "queue" : "owner");

    const overdue = dues.flatMap((found, i) =>
      found
        .filter(({ at }) => at >= from && at < now - LATE_MS)
        .map(({ local, at }) => ({ task: { queue: queues[i] as string, ...parseLocalName(local) }, at })),
    );
    const tagsOf = await readTags(call, by === "tag" || tag !== undefined, [
      ...runs.map(({ run }) => run.task),
      ...skips.map(({ task }) => task),
      ...overdue.map(({ task }) => task),
    ]);
    const isShown = (task: TaskName) =>
      (owner === undefined || task.owner === owner) && (tag === undefined || tagsOf(task).includes(tag));
    const shown = runs.filter(({ run }) => isShown(run.task));
    const grid = new BoardGrid(range, by, tagsOf);
    for (const { run, stands } of shown) grid.addRun(run, stands);
    const shownSkips = skips.filter(({ task }) => isShown(task));
    for (const skip of shownSkips) grid.addSkip(skip);
    for (const { task, at } of overdue) if (isShown(task)) grid.add(task, at, "overdue", 1);
    if (range.to > now) {
      const slice = new TimeSlice(MOST_STEPS);
      const coming = { from: Math.max(now + 1, from), to: range.to, step };
      for (const [i, { all, locals, timings }] of samples.entries()) {
        const name = queues[i] as string;
        const loads = new Map<string, ReturnType<typeof emptyLoad>>();
        for (const timing of timings)
          for (const row of grid.rowsOf({ queue: name, ...timing }, timing.tags)) {
            const load = loads.get(row) ?? emptyLoad(store, [], coming, slice);
            loads.set(row, load);
            load.add(name, [timing]);
          }
        for (const [row, load] of loads)
          grid.addPlanned(row, coming.from, await load.counts().catch(() => []), all / locals.length);
      }
    }
    // Groups without an occurrence have a row too.
    if (by !== "tag")
      for (const [i, { locals }] of samples.entries())
        for (const local of locals) grid.rowsOf({ queue: queues[i] as string, ...parseLocalName(local) });

    const { rows, hidden } = grid.shown(MOST_ROWS);
    return {
      ...{
        now,
        from,
        to: range.to,
        step,
        by,
        tasks,
        rows,
        hidden: by === "task" ? Math.max(0, tasks - rows.length) : hidden,
      },
      bands: [
        ...freezes
          .filter((freeze) => mayRead(call, freeze))
          .flatMap((freeze) => windowsOf(freeze, range, call.owner)),
        ...queues.flatMap((queue, i) => queuePause(queue, states[i]?.paused)),
        ...(await taskPauses(call, rows)),
      ],
      events: processes === undefined ? [] : eventsOf(processes, log, past),
      ...grid.charts(),
      sums: { ...grid.sums(), read: shown.length, doubled: doubledOf(shown.map(({ run }) => run)) },
      runs: listsOf(shown.map(({ run }) => run)),
      skips: shownSkips.sort((a, b) => b.at - a.at).slice(0, LISTED),
    };
  },
});

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

/** The times in a range in which a freeze holds. */
function windowsOf(
  freeze: Freeze,
  { from, to }: { from: number; to: number },
  bound: string | undefined,
): z.output<typeof board>["bands"] {
  const { queue, owner, tag, tasks, by, note } = freeze;
  const held = tasks?.filter((task) => bound === undefined || task.owner === bound) ?? [
    { queue, owner, tag },
  ];
  const bands: z.output<typeof board>["bands"] = [];
  let at: number | undefined = frozenAt([freeze], from) ? from : nextFreeze([freeze], from);
  while (at !== undefined && at < to && bands.length < MOST_CELLS) {
    const until = frozenAt([freeze], at)?.until;
    for (const scope of held) bands.push({ kind: "freeze", from: at, to: until, ...scope, by, note });
    at = until === undefined ? undefined : nextFreeze([freeze], until - 1);
  }
  return bands;
}

function queuePause(queue: string, paused: QueuePause | undefined): z.output<typeof board>["bands"] {
  if (paused?.at === undefined) return [];
  const { at, by, note } = paused;
  return [{ kind: "queue-paused", from: at, queue, by, note }];
}

async function taskPauses(
  { store }: Call,
  rows: readonly { task?: TaskName | undefined }[],
): Promise<z.output<typeof board>["bands"]> {
  const names = rows.flatMap(({ task }) => task ?? []);
  const tasks = await Promise.all(names.map((name) => store.tasks.get(name).catch(() => undefined)));
  return tasks.flatMap((task) => {
    if (task?.state !== "paused" || task.paused === undefined) return [];
    const { queue, owner, id } = task.definition;
    const { at, by, note } = task.paused;
    return [{ kind: "task-paused" as const, from: at, queue, owner, id, by, note }];
  });
}

interface Started {
  readonly id: string;
  readonly started: number;
}

/** Deploys: sets of tasks that were applied, and processes that started. */
function eventsOf(
  [nodes, workers]: readonly [readonly Started[], readonly Started[]],
  log: readonly StoredChange[],
  { from, to }: { from: number; to: number },
): z.output<typeof board>["events"] {
  const applied = log.flatMap((stored) => {
    const { kind, at, scope, by } = decodeChange(stored) ?? {};
    return kind === "apply" && at !== undefined
      ? [{ kind: "deploy" as const, at, name: scope?.set ?? "", by }]
      : [];
  });
  const started = (kind: "node" | "worker", all: readonly Started[]) =>
    all.map(({ id, started: at }) => ({ kind, at, name: id }));
  return [...applied, ...started("node", nodes), ...started("worker", workers)]
    .filter(({ at }) => at >= from && at <= to)
    .sort((a, b) => b.at - a.at)
    .slice(0, 50);
}

/** Occurrences of schedules with a second run that is not a retry. */
function doubledOf(runs: readonly ShortRun[]): number {
  const scheduled = runs.filter(({ trigger }) => trigger === "schedule" || trigger === "catch-up");
  return scheduled.length - new Set(scheduled.map(({ key, task }) => `${task.queue} ${key}`)).size;
}

function listsOf(runs: readonly ShortRun[]): z.output<typeof board>["runs"] {
  const view = ({ id: run, task, nominal, outcome, started, finished, lateMs, waitMs }: ShortRun) => ({
    ...{ run, task, nominal, outcome, started, finished, lateMs, waitMs },
    ...(started !== undefined && finished !== undefined && { durationMs: Math.max(0, finished - started) }),
  });
  const all = runs.map(view).sort((a, b) => (b.finished ?? b.nominal) - (a.finished ?? a.nominal));
  const ended = all.filter(({ durationMs }) => durationMs !== undefined);
  return {
    newest: all.slice(0, LISTED),
    slowest: ended.sort((a, b) => (b.durationMs ?? 0) - (a.durationMs ?? 0)).slice(0, LISTED),
    failed: all.filter(({ outcome }) => outcome && FAILURES.has(outcome)).slice(0, LISTED),
  };
}
