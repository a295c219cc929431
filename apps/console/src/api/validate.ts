import { type Client, canonicalSchedule, describeSchedule, lintSchedule } from "@carillon/sdk";
import { z } from "zod";
import { Checker } from "./checker.js";
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
export function validateEndpoint(client: Client) {
  const checker = new Checker(client);
  return endpoint({ body: VALIDATE }, async ({ body }) => {
    const { schedule, seed } = await checker.check(body);
    const [now, shared] = await Promise.all([client.store.serverTime(), client.store.calendars.list()]);
    const context = { calendars: new Map(shared.map(({ name, entries }) => [name, entries])) };
    const from = body.from ?? now;
    const count = Math.min(body.count, schedule.maxRuns ?? body.count);
    const { timezone, times, excluded, exhausted } = nextTimes(schedule, { from, count, seed, context });
    const warnings = lintSchedule(schedule, context);
    return ok({
      schedule,
      canonical: canonicalSchedule(schedule, seed),
      humanized: describeSchedule(schedule),
      warnings: times.length === 0 ? [...warnings, NO_NEXT] : warnings,
      timezone,
      next: times.map(({ time, notes }) => ({ nominal: time, notes })),
      excluded: excluded.map(({ time, by }) => ({ nominal: time, by })),
      exhausted: exhausted || times.length === schedule.maxRuns,
    });
  });
}
