import { CarillonError, type Client, type Schedule, type TaskInput } from "@carillon/sdk";
import { type Store, storeOf, type Validation } from "@carillon/sdk/internal";
import { canonicalSchedule, describeSchedule, seedOf } from "@carillon/sdk/schedule";
import { z } from "zod";
import type { Redactor } from "../redact.js";
import { VALIDATED } from "./answers.js";
import { nextTimes } from "./next-times.js";
import { endpoint, ok } from "./route.js";
import { withHidden } from "./tasks.js";

const MAX_COUNT = 100;
/** The last millisecond of the year 9999. */
const MAX_TIME = 253_402_300_799_999;

const VALIDATE = z.strictObject({
  task: z.unknown().optional(),
  schedule: z.unknown().optional(),
  id: z.string("not a text").optional(),
  owner: z.string("not a text").optional(),
  count: z
    .int("not a whole number")
    .min(1, "less than 1")
    .max(MAX_COUNT, `more than ${MAX_COUNT}`)
    .default(5),
  from: z.int("not a whole number").min(0, "before 1970").max(MAX_TIME, "after 9999").optional(),
});

/** Checks a task or a schedule as a put does, and computes its next times; stores nothing. */
export function validateEndpoint(store: Store, redactor: Redactor) {
  return endpoint({ body: VALIDATE, answer: VALIDATED }, async ({ client, body }) => {
    const { task } = await withHidden(redactor, client, body.task);
    const { schedule, seed, warnings } = await check(client, { ...body, task });
    const now = await client.serverTime();
    // With the calendars that the check has loaded.
    const { context } = store.calendars.schedules;
    const from = body.from ?? now;
    const count = Math.min(body.count, schedule.maxRuns ?? body.count);
    const { timezone, times, excluded, exhausted } = await nextTimes(schedule, {
      from,
      count,
      seed,
      context,
    });
    return ok({
      schedule,
      canonical: canonicalSchedule(schedule, seed),
      humanized: describeSchedule(schedule, seed),
      warnings,
      timezone,
      next: times.map(({ time, due, notes }) => ({ nominal: time, due: due?.time, notes })),
      excluded: excluded.map(({ time, by }) => ({ nominal: time, by })),
      exhausted: exhausted || times.length === schedule.maxRuns,
    });
  });
}

/** A valid schedule, and the seed of `H` and jitter. */
interface Checked {
  readonly schedule: Schedule;
  readonly seed: string;
  readonly warnings: Validation["warnings"];
}

/** @throws as `Client.put`; `INVALID_OPTION` unless exactly one of task and schedule is given */
async function check(client: Client, body: z.output<typeof VALIDATE>): Promise<Checked> {
  const { task, schedule, id, owner } = body;
  // The times are computed here, with notes about each.
  const judge = (input: unknown) => client.validate(input as TaskInput, { count: 0, from: body.from });
  if (task !== undefined) {
    const beside = (["schedule", "id", "owner"] as const).find((field) => body[field] !== undefined);
    if (beside !== undefined)
      throw refused(beside, "cannot be combined with task.", "Leave one of the two out.");
    const passed = await judge(task);
    return { ...passed, seed: seedOf(task as TaskInput) };
  }
  if (schedule === undefined) throw refused("task", "missing.", "Give a task or a schedule.");
  // The type does not matter for a schedule alone, so use any type that is allowed.
  const [type = "none"] = (await storeOf(client)?.registry.types()) ?? [];
  const passed = await judge({ id: id ?? "none", owner, type, queue: "none", schedule });
  const warnings = passed.warnings.filter(({ code }) => code !== "NO_WORKER");
  return { schedule: passed.schedule, seed: seedOf({ owner, id: id ?? "" }), warnings };
}

function refused(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
