import { CarillonError } from "@carillon/core";
import { quote } from "@carillon/core/internal";
import type { SharedCalendar, Store } from "@carillon/store";
import { z } from "zod";
import { nameOf, Tally } from "../bulk/bulk.js";
import { count, taskName, time } from "../shapes.js";

export const calendar = z.object({ name: z.string(), revision: count, updated: time, by: z.string() });

/** Tasks whose next time a change of a calendar would move. */
export const moved = z
  .object({
    count,
    sample: z
      .array(taskName.extend({ before: time.optional(), after: time.optional() }))
      .readonly()
      .describe("The first ten of them, with the next time as it is and as it would be. Missing: none."),
  })
  .meta({ id: "Moved" });
const SAMPLE = 10;

/** @throws `CALENDAR_NOT_FOUND` */
export async function findCalendar(store: Store, name: string): Promise<SharedCalendar> {
  const found = (await store.calendars.list()).find((one) => one.name === name);
  if (!found) throw calendarNotFound(name);
  return found;
}

export function calendarNotFound(name: string): CarillonError {
  return new CarillonError("CALENDAR_NOT_FOUND", `there is no calendar ${quote(name)}.`, {
    remedy: "List the calendars to find its name.",
  });
}

export async function countUsers({ calendars, registry }: Store, name: string): Promise<number> {
  const queues = await registry.queues();
  const counts = await Promise.all(queues.map((queue) => calendars.users(queue, name)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Computes the next times again of all tasks that name a changed calendar. Returns their number. */
export async function replan({ calendars, registry }: Store): Promise<number> {
  await calendars.refresh();
  let replanned = 0;
  for (const queue of await registry.queues()) replanned += await calendars.replanStale(queue);
  return replanned;
}

/** The tasks whose next time would move if a calendar had these entries. */
export async function movedBy(
  { calendars, registry }: Store,
  name: string,
  entries: readonly string[],
): Promise<z.output<typeof moved>> {
  const tally = new Tally<z.output<typeof moved>["sample"][number]>(SAMPLE);
  for (const queue of await registry.queues()) {
    for await (const { task, nominal } of calendars.movedBy(queue, name, entries)) {
      const { nominal: before } = task;
      tally.add({
        ...nameOf(task),
        ...(before !== undefined && { before }),
        ...(nominal !== undefined && { after: nominal }),
      });
    }
  }
  return tally.result;
}
