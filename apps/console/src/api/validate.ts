import {
  CarillonError,
  type Client,
  canonicalSchedule,
  describeSchedule,
  lintSchedule,
  type Schedule,
  type TaskInput,
} from "@carillon/sdk";
import { z } from "zod";
import type { Redactor } from "../redact.js";
import { nextTimes } from "./next-times.js";
import { endpoint, ok } from "./route.js";

const MAX_COUNT = 100;
/** The last millisecond of the year 9999. */
const MAX_TIME = 253_402_300_799_999;

const VALIDATE = z.strictObject({
  task: z.unknown().optional(),
  schedule: z.unknown().optional(),
  id: z.string("not a text").optional(),
  count: z
    .int("not a whole number")
    .min(1, "less than 1")
    .max(MAX_COUNT, `more than ${MAX_COUNT}`)
    .default(5),
  from: z.int("not a whole number").min(0, "before 1970").max(MAX_TIME, "after 9999").optional(),
});

const NO_NEXT = {
  code: "NO_NEXT",
  message: "All times of this schedule are past: the task is stored as finished.",
};

/** What a put would say of a task or a schedule, and when it would run; nothing is stored. */
export function validateEndpoint(client: Client, redactor: Redactor) {
  return endpoint({ body: VALIDATE }, async ({ body }) => {
    redactor.refuseShown((body.task as Partial<TaskInput> | null | undefined)?.payload);
    const { schedule, seed } = await check(client, body);
    const { calendars } = client.store;
    const now = await client.store.serverTime();
    // As the check has read them.
    const { context } = calendars.schedules;
    const from = body.from ?? now;
    const count = Math.min(body.count, schedule.maxRuns ?? body.count);
    const { timezone, times, excluded, exhausted } = nextTimes(schedule, { from, count, seed, context });
    const warnings = lintSchedule(schedule, context);
    return ok({
      schedule,
      canonical: canonicalSchedule(schedule, seed),
      humanized: describeSchedule(schedule, seed),
      warnings: times.length === 0 ? [...warnings, NO_NEXT] : warnings,
      timezone,
      next: times.map(({ time, due, notes }) => ({ nominal: time, due: due?.time, notes })),
      excluded: excluded.map(({ time, by }) => ({ nominal: time, by })),
      exhausted: exhausted || times.length === schedule.maxRuns,
    });
  });
}

/** A schedule that passed, and what `H` and jitter are derived from. */
interface Checked {
  readonly schedule: Schedule;
  readonly seed: string;
}

/** @throws as `Client.put`; `INVALID_OPTION` unless exactly one of task and schedule is given */
async function check(client: Client, { task, schedule, id }: z.output<typeof VALIDATE>): Promise<Checked> {
  // The times are computed here, with what is special about each.
  const judge = (input: unknown) => client.validate(input as TaskInput, { count: 0 });
  if (task !== undefined) {
    const beside = schedule !== undefined ? "schedule" : id !== undefined ? "id" : undefined;
    if (beside !== undefined) throw refused(beside, "given beside task.", "Leave one of the two out.");
    const passed = await judge(task);
    return { schedule: passed.schedule, seed: (task as TaskInput).id };
  }
  if (schedule === undefined) throw refused("task", "missing.", "Give a task or a schedule.");
  // It may be for any task: of a type that may be put, for it is not the type that is asked about.
  const [type = "none"] = await client.allowedTypes();
  const passed = await judge({ id: id ?? "none", type, queue: "none", schedule });
  return { schedule: passed.schedule, seed: id ?? "" };
}

function refused(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
