import { compileSchedule } from "@carillon/core";
import { parseDuration, scheduleSteps, segmentAt, zoneOf } from "@carillon/core/internal";
import { notFound, roundedInstant } from "@carillon/sdk/internal";
import type { Skip, Store, StoredTask } from "@carillon/store";
import { LEDGER_MOST } from "@carillon/store/internal";
import { z } from "zod";
import { TimeSlice } from "../occurrences/time-slice.js";
import { timesFrom } from "../occurrences/walk.js";
import { operation } from "../operation.js";
import { count, duration, instant, refOf, taskName, taskRef, time } from "../shapes.js";
import { CAUSES, compareTimes, type Decided } from "./compare.js";

const WEEK = 7 * 86_400_000;
/** Marks may arrive this much later than what they mark, in ms. */
const SETTLED = 60_000;
/** Times of a shadow in one report. */
const MOST_TIMES = 20_000;
const MOST_DIFFERENCES = 100;

/** The skips have what would have been enqueued; the marks, what was. Times before the first mark, or before the last edit, are left out. */
export const shadowReport = operation({
  http: "GET /tasks/:queue/:owner/:id/shadow/report",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary: "Compares the times that a shadow would have enqueued with those that another scheduler fired.",
  input: z.strictObject({
    ...taskRef,
    since: instant.optional().describe("Default: a week ago."),
    tolerance: duration
      .optional()
      .describe("Largest difference of equal times. Default: 60 s, half of an interval at most."),
  }),
  output: z.object({
    task: taskName,
    from: time,
    to: time,
    observed: count.describe("Number of times that were marked. 0: nothing is compared."),
    same: count,
    different: count,
    differences: z
      .array(
        z.object({
          ours: time.optional(),
          theirs: time.optional(),
          cause: z.enum(CAUSES),
          reason: z.string().optional().describe("Reason of the skip."),
        }),
      )
      .describe(`The first ${MOST_DIFFERENCES}, in order. Both times: shifted.`),
  }),
  async run({ scope }, { since, tolerance: given, ...ref }) {
    const name = await scope.locate(refOf(ref));
    const { store } = scope;
    const tolerance = given === undefined ? 60_000 : parseDuration(given, "tolerance");
    const [stored, now, ledger] = await Promise.all([
      store.tasks.get(name),
      store.tasks.time(name.queue),
      store.runs.ledger(name),
      store.calendars.refresh(),
    ]);
    if (!stored) throw notFound(name);
    const asked = since === undefined ? now - WEEK : roundedInstant(since, "since");
    const to = Math.min(now - SETTLED, stored.cursor ?? 0);
    // A full list of skips may have forgotten earlier ones.
    const known = ledger.length < LEDGER_MOST ? 0 : (ledger.at(-1) as Skip).from;
    const earliest = Math.max(asked, stored.updated, known);
    const marks = await store.observations.list(name, earliest, to + tolerance);
    const from = Math.max(earliest, (marks[0]?.nominal ?? to) - tolerance);
    const decided = await decidedTimes(store, stored, ledger, { from, to });
    const end = decided.length < MOST_TIMES ? to : (decided.at(-1) as Decided).time;
    const { same, differences } = compareTimes(decided, marks, { tolerance, ...aboutOf(stored) });
    // A mark after the end belongs to a time that is not decided yet.
    const found = differences.filter(({ ours, theirs = 0 }) => ours !== undefined || theirs <= end);
    const facts = { from, to: end, observed: marks.length, same, different: found.length };
    return marks.length === 0
      ? { task: name, ...facts, different: 0, differences: [] }
      : { task: name, ...facts, differences: found.slice(0, MOST_DIFFERENCES) };
  },
});

/** Expands the skips by the schedule. */
async function decidedTimes(
  store: Store,
  { definition }: StoredTask,
  ledger: readonly Skip[],
  window: { from: number; to: number },
): Promise<Decided[]> {
  const schedule = store.calendars.schedules.get(definition);
  const decided: Decided[] = [];
  const slice = new TimeSlice();
  for (const { reason, from, to } of [...ledger].sort((a, b) => a.from - b.from)) {
    const [first, last] = [Math.max(from, window.from), Math.min(to, window.to)];
    // A fixed delay has no times of its own.
    const start = schedule.delay === undefined ? schedule.next(first - 1) : first;
    for await (const time of slice.over(
      timesFrom(schedule, start, last),
      scheduleSteps(definition.schedule),
    )) {
      if (decided.length >= MOST_TIMES) return decided;
      decided.push({ time, reason });
    }
  }
  return decided;
}

function aboutOf({ definition: { schedule } }: StoredTask) {
  const {
    cron,
    timezone = "UTC",
    dialect,
  } = schedule as { cron?: string; timezone?: string; dialect?: "cron-parser" };
  const [ours, theirs] = [dialect, "cron-parser" as const].map((dialect) => {
    try {
      return compileSchedule({ cron: cron ?? "", timezone, dialect });
    } catch {
      // Not a cron schedule, or not one in the other dialect.
      return undefined;
    }
  });
  return {
    offsetAt: (time: number) => segmentAt(zoneOf(timezone), time).offset,
    differsByDialect: (time: number) =>
      theirs !== undefined && (ours?.next(time - 1) === time) !== (theirs.next(time - 1) === time),
  };
}
