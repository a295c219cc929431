import { CarillonError } from "@carillon/core";
import { assertName } from "@carillon/core/internal";
import { shown } from "@carillon/sdk/internal";
import { z } from "zod";
import { exampleTask, operation } from "../operation.js";
import { given } from "../shapes.js";
import { calendarNotFound, countUsers, findCalendar, replan } from "./calendar.js";

export const deleteCalendar = operation({
  http: "DELETE /calendars/:name",
  role: "admin",
  reach: "namespace",
  logs: "calendar.delete",
  once: {
    known: "state",
    leaves: "whole",
    against: [["tasks.put", { task: exampleTask("k1", { every: "1h", except: [{ named: "spare" }] }) }]],
  },
  example: { name: "spare" },
  summary: "Deletes a shared calendar that no task names.",
  input: z.strictObject({ name: given.describe("A calendar's name.") }),
  async run({ store, log }, { name }) {
    assertName(name, "name");
    assertUnused(name, await countUsers(store, name));
    const { entries, by } = await findCalendar(store, name);
    if (!(await store.calendars.delete(name))) throw calendarNotFound(name);
    // A task that names it may have been put meanwhile.
    const since = await countUsers(store, name);
    if (since > 0) {
      await store.calendars.put(name, entries, by);
      await replan(store);
      assertUnused(name, since);
    }
    log({ calendar: name }, { before: shown({ entries }) });
  },
});

/** @throws `CALENDAR_IN_USE` */
function assertUnused(name: string, tasks: number): void {
  if (tasks === 0) return;
  const users = tasks === 1 ? "1 task names" : `${tasks} tasks name`;
  throw new CarillonError("CALENDAR_IN_USE", `${users} the calendar ${name}.`, {
    remedy: "Change or delete them first.",
  });
}
