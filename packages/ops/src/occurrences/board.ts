import { type Duration, OUTCOMES, SKIP_REASONS, type TaskName } from "@carillon/core";
import {
  assertName,
  displayShape,
  durationOption,
  FAILURES,
  invalid,
  scheduleZone,
} from "@carillon/core/internal";
import type { Task } from "@carillon/sdk";
import { roundedInstant, tasksWithStatus } from "@carillon/sdk/internal";
import type { ShortRun } from "@carillon/store";
import { z } from "zod";
import { keyOf } from "../bulk/bulk.js";
import { type Call, operation } from "../operation.js";
import { count, duration, given, instant, oneOf, taskName, time } from "../shapes.js";
import {
  band,
  boardEvent,
  endedPauses,
  eventsOf,
  freezesOf,
  MOST_CELLS,
  pausesOf,
  taskPauses,
} from "./board-bands.js";
import { BoardGrid, MARKS } from "./board-grid.js";
import { readBoard, type Sample, shownOf } from "./board-reads.js";
import { emptyLoad } from "./load.js";
import { TimeSlice } from "./time-slice.js";

const marks = z.object(
  Object.fromEntries(MARKS.map((mark) => [mark, count.optional()])) as Record<
    (typeof MARKS)[number],
    z.ZodOptional<typeof count>
  >,
);
const timezone = z.string().optional().describe("The zone of the task's schedule, if it has one.");
const runOnBoard = z.object({
  run: z.string(),
  task: taskName,
  timezone,
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
        display: displayShape.optional().describe("What that task does or waits for now."),
        timezone,
        cells: z.array(marks.extend({ i: count.describe("Number of the cell, from 0.") })),
      }),
    )
    .describe(
      "At most 30: those with most faults, then those with most occurrences; in the order of their names.",
    ),
  hidden: count.describe("Number of further rows."),
  bands: z
    .array(band)
    .describe(
      "Times in which a freeze or a pause holds or held; it concerns all tasks with these fields. Ended ones: the newest freezes, and what the newest changes name.",
    ),
  events: z.array(boardEvent).describe("Sets of tasks that were applied, and starts of nodes and workers."),
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
      timezone,
      reason: z.enum(SKIP_REASONS),
      ...{ from: time, to: time, at: time },
    }),
  ),
});

const HOUR = 3_600_000;
const MOST_ROWS = 30;
/** Up to this many tasks, a row is a task. */
const FEW = 24;
/** Steps of schedules for one answer. */
const MOST_STEPS = 300_000;
const LISTED = 8;

const input = z.strictObject({
  from: instant.optional().describe("Default: 6 hours ago."),
  to: instant.optional().describe("Default: 12 hours after `from`."),
  step: duration.optional().describe("Length of a cell, at least 1 s; at most 300 cells. Default: 5m."),
  by: oneOf(["queue", "owner", "tag", "task"])
    .optional()
    .describe("The rows. Default: tasks if there are at most 24, or queues if there are several, or owners."),
  ...{ queue: given.optional(), owner: given.optional(), tag: given.optional() },
});

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
  input,
  output: board,
  async run(call, input) {
    const { scope, store } = call;
    const only = scope.bind(input);
    for (const field of ["queue", "owner", "tag"] as const)
      if (only[field] !== undefined) assertName(only[field], field);
    const queues = await scope.queuesOf(only.queue);
    const [now, freezes, ended] = await Promise.all([
      queues[0] === undefined ? store.serverTime() : store.tasks.time(queues[0]),
      store.freezes.list(),
      store.freezes.ended(),
      store.calendars.refresh(),
    ]);
    const range = rangeOf(input, now);
    const past = { ...range, to: Math.min(now, range.to - 1), now };
    const read = await readBoard(call, queues, only, past);
    const { samples } = read;
    const tasks = samples.reduce((sum, { all }) => sum + all, 0);
    const by = input.by ?? (tasks <= FEW ? "task" : queues.length > 1 ? "queue" : "owner");
    const { runs, skips, overdue, tagsOf } = await shownOf(call, read, only, by === "tag");
    const grid = new BoardGrid(range, by, tagsOf);
    for (const { run, stands } of runs) grid.addRun(run, stands);
    for (const skip of skips) grid.addSkip(skip);
    for (const { task, at } of overdue) grid.add(task, at, "overdue", 1);
    await addComing(call, grid, samples, { ...range, from: Math.max(now + 1, range.from) });
    // Groups without an occurrence have a row too.
    if (by !== "tag") for (const { names } of samples) for (const name of names) grid.rowsOf(name);
    const { rows, hidden } = grid.shown(MOST_ROWS);
    const named = await namedTasks(call, rows);
    const zones = zonesOf(samples);
    const inZone = <Of extends OfTask>(of: Of) => ({ ...of, timezone: of.task && zones.get(keyOf(of.task)) });
    const { from, to, step } = range;
    return {
      ...{ now, from, to, step, by, tasks },
      rows: rows.map((row) => inZone({ ...row, display: row.task && named.get(keyOf(row.task))?.display })),
      hidden: by === "task" ? Math.max(0, tasks - rows.length) : hidden,
      bands: [
        ...freezesOf(call, [...freezes, ...ended], range),
        ...pausesOf(read.states),
        ...endedPauses(read.log).filter(({ from, to = from }) => from < range.to && to > range.from),
        ...taskPauses([...named.values()]),
      ],
      events: eventsOf(read, past),
      ...grid.charts(),
      sums: { ...grid.sums(), read: runs.length, doubled: doubledOf(runs.map(({ run }) => run)) },
      runs: listsOf(
        runs.map(({ run }) => run),
        inZone,
      ),
      skips: skips
        .sort((a, b) => b.at - a.at)
        .slice(0, LISTED)
        .map(inZone),
    };
  },
});

interface OfTask {
  readonly task?: TaskName | undefined;
}

/** Zones of the sampled tasks whose schedules have one. */
function zonesOf(samples: readonly Sample[]): ReadonlyMap<string, string> {
  const zones = new Map<string, string>();
  for (const { queue, timings } of samples)
    for (const { owner, id, schedule } of timings) {
      const zone = scheduleZone(schedule);
      if (zone !== undefined) zones.set(keyOf({ queue, owner, id }), zone);
    }
  return zones;
}

async function namedTasks({ scope, store }: Call, rows: readonly OfTask[]): Promise<Map<string, Task>> {
  const names = rows.flatMap(({ task }) => task ?? []);
  const stored = await Promise.all(names.map((name) => store.tasks.get(name).catch(() => undefined)));
  const tasks = await tasksWithStatus(
    scope,
    stored.filter((one) => one !== undefined),
  );
  return new Map(tasks.map((task) => [keyOf(task), task]));
}

/** Whole cells, from the time that is given. @throws `INVALID_OPTION` */
function rangeOf(
  { from: first, to: last, step: length = "5m" }: Pick<z.output<typeof input>, "from" | "to" | "step">,
  now: number,
): { from: number; to: number; step: number; size: number } {
  const step = durationOption(length as Duration, "step", 1_000, 24 * HOUR);
  const start = first === undefined ? now - 6 * HOUR : roundedInstant(first, "from");
  const end = last === undefined ? start + 12 * HOUR : roundedInstant(last, "to");
  if (end <= start) throw invalid("to", "not after from.", "Give a later time.");
  const from = first === undefined ? Math.floor(start / step) * step : start;
  const size = Math.ceil((end - from) / step);
  if (size > MOST_CELLS)
    throw invalid("step", `more than ${MOST_CELLS} cells.`, "Give a longer step, or a shorter time.");
  return { from, to: from + size * step, step, size };
}

/** Adds the planned occurrences of the sampled tasks, each for as many as it stands for. */
async function addComing(
  { store }: Call,
  grid: BoardGrid,
  samples: readonly Sample[],
  coming: { readonly from: number; readonly to: number; readonly step: number },
): Promise<void> {
  if (coming.from >= coming.to) return;
  const slice = new TimeSlice(MOST_STEPS);
  for (const { queue, all, names, timings } of samples) {
    const loads = new Map<string, ReturnType<typeof emptyLoad>>();
    for (const timing of timings)
      for (const row of grid.rowsOf({ queue, ...timing }, timing.tags)) {
        const load = loads.get(row) ?? emptyLoad(store, [], coming, slice);
        loads.set(row, load);
        load.add(queue, [timing]);
      }
    for (const [row, load] of loads)
      grid.addPlanned(row, coming.from, await load.counts().catch(() => []), all / names.length);
  }
}

/** Occurrences of schedules with a second run that is not a retry. */
function doubledOf(runs: readonly ShortRun[]): number {
  const scheduled = runs.filter(({ trigger }) => trigger === "schedule" || trigger === "catch-up");
  return scheduled.length - new Set(scheduled.map(({ key, task }) => `${task.queue} ${key}`)).size;
}

function listsOf(
  runs: readonly ShortRun[],
  inZone: <Of extends OfTask>(of: Of) => Of & { timezone: string | undefined },
): z.output<typeof board>["runs"] {
  const view = ({ id: run, task, nominal, outcome, started, finished, lateMs, waitMs }: ShortRun) => ({
    ...inZone({ run, task, nominal, outcome, started, finished, lateMs, waitMs }),
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
