import {
  type CarillonError,
  canonicalSchedule,
  describeSchedule,
  type Schedule,
  seedOf,
  type TaskInput,
  taskSchema,
} from "@carillon/core";
import { invalid } from "@carillon/core/internal";
import { roundedInstant, type Validation } from "@carillon/sdk/internal";
import { z } from "zod";
import { type Call, operation } from "../operation.js";
import { count, describedBy, flag, given, instant, time, warning } from "../shapes.js";
import { nextTimes, yearOf } from "./next-times.js";
import { preview, putOutcome, taskInput } from "./task.js";

const MAX_COUNT = 100;
/** The last millisecond of the year 9999. */
const MAX_TIME = 253_402_300_799_999;

const notes = z.array(z.object({ code: z.string(), text: z.string() })).readonly();

const input = z.strictObject({
  task: taskInput.optional(),
  schedule: describedBy<unknown>(taskSchema.shape.schedule).optional().describe("Instead of a task."),
  id: given.optional().describe("With a schedule: seeds `H` and jitter."),
  owner: given.optional(),
  count: z
    .int("not a whole number")
    .min(1, "less than 1")
    .max(MAX_COUNT, `more than ${MAX_COUNT}`)
    .default(5)
    .describe("Number of times. Default: 5."),
  year: flag.optional().describe("Also counts the times of each day of a year, for a picture of it."),
  from: instant.optional().describe("Times strictly after it. Default: now."),
});

export const validate = operation({
  http: "POST /tasks/validate",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  logs: false,
  once: "reads",
  example: { task: { id: "n1", queue: "bells", type: "ring", schedule: { every: "1h" }, payload: {} } },
  summary:
    "Checks a task or a schedule as a put does, and computes its next times and what would change; stores nothing.",
  input,
  output: z.object({
    schedule: taskSchema.shape.schedule as z.ZodType<Schedule, Schedule>,
    canonical: z.string(),
    humanized: z.string(),
    warnings: z.array(warning).readonly(),
    timezone: z.string(),
    next: z.array(
      z.object({
        nominal: time,
        due: time.optional().describe("Present if it is due later, because of jitter."),
        notes,
      }),
    ),
    excluded: z.array(z.object({ nominal: time, by: z.string() })),
    year: z
      .array(
        z.object({
          start: time.describe("Its first instant in the zone of the schedule; UTC if its members differ."),
          times: count.describe("25: that or more."),
          excluded: count.describe("Times that exclusions remove, at most 100."),
          by: z.string().optional().describe("The exclusion of the first of these."),
          notes: notes.describe(
            "If a clock changes: the day's length, and times that are lost, moved or doubled.",
          ),
        }),
      )
      .readonly()
      .optional()
      .describe("Fewer days than 366 if they took too long."),
    exhausted: z.boolean().describe("Nothing follows these."),
    outcome: putOutcome.optional().describe("Of a put of the task."),
    preview: preview.optional(),
  }),
  async run(call, given) {
    const asked = given.from === undefined ? undefined : roundedInstant(given.from, "from");
    if (asked !== undefined && !(asked >= 0 && asked <= MAX_TIME))
      throw refused("from", "not within the years 1970 to 9999.", "Give another time.");
    const { schedule, seed, warnings, outcome, preview } = await check(call, given);
    const now = await call.client.serverTime();
    // With the calendars that the check has loaded.
    const { context } = call.store.calendars.schedules;
    const from = asked ?? now;
    const most = Math.min(given.count, schedule.maxRuns ?? given.count);
    const found = await nextTimes(schedule, { from, count: most, seed, context });
    return {
      schedule,
      canonical: canonicalSchedule(schedule, seed),
      humanized: describeSchedule(schedule, seed),
      warnings,
      timezone: found.timezone,
      next: found.times.map(({ time, due, notes }) => ({ nominal: time, due: due?.time, notes })),
      excluded: found.excluded.map(({ time, by }) => ({ nominal: time, by })),
      ...(given.year && { year: await yearOf(schedule, { from, seed, context }) }),
      exhausted: found.exhausted || found.times.length === schedule.maxRuns,
      ...(outcome && { outcome, preview }),
    };
  },
});

/** A valid schedule, and the seed of `H` and jitter. */
interface Checked {
  readonly schedule: Schedule;
  readonly seed: string;
  readonly warnings: Validation["warnings"];
  readonly outcome?: Validation["outcome"];
  readonly preview?: Validation["preview"];
}

/** @throws as `Client.put`; `INVALID_OPTION` unless exactly one of task and schedule is given */
async function check({ client, store }: Call, body: z.output<typeof input>): Promise<Checked> {
  const { task, schedule, id, owner } = body;
  // The times are computed here, with notes about each.
  const judge = (input: unknown) => client.validate(input as TaskInput, { count: 0, from: body.from });
  if (task !== undefined) {
    const beside = (["schedule", "id", "owner"] as const).find((field) => body[field] !== undefined);
    if (beside !== undefined)
      throw refused(beside, "cannot be combined with task.", "Leave one of the two out.");
    const passed = await judge(task);
    return { ...passed, seed: seedOf(task) };
  }
  if (schedule === undefined) throw refused("task", "missing.", "Give a task or a schedule.");
  // The type does not matter for a schedule alone, so use any type that is allowed.
  const [type = "none"] = (await store.registry.types()) ?? [];
  const passed = await judge({ id: id ?? "none", owner, type, queue: "none", schedule });
  const warnings = passed.warnings.filter(({ code }) => code !== "NO_WORKER" && code !== "NO_NODE");
  return { schedule: passed.schedule, seed: seedOf({ owner, id: id ?? "" }), warnings };
}

function refused(field: string, what: string, remedy: string): CarillonError {
  return invalid(field, what, remedy);
}
