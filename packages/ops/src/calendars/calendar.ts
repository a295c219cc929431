import { CarillonError } from "@carillon/core";
import { quote } from "@carillon/core/internal";
import type { SharedCalendar, Store } from "@carillon/store";
import { z } from "zod";
import { count, time } from "../shapes.js";

export const calendar = z.object({ name: z.string(), revision: count, updated: time, by: z.string() });

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

/** Number of tasks that name a calendar. */
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
