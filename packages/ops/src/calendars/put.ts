import { assertName, checkCalendar } from "@carillon/core/internal";
import { shown } from "@carillon/sdk/internal";
import type { CalendarOutcome } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, dryRun, given } from "../shapes.js";
import { countUsers, moved, movedBy, replan } from "./calendar.js";

/**
 * Stores a calendar: dates (`2026-12-25`) and calendar events (`*-05-01`), which schedules name in `except`. The next times of all
 * tasks that name it are computed again before this resolves; if it is interrupted, put the calendar again, or a node does it.
 */
export const putCalendar = operation({
  http: "PUT /calendars/:name",
  role: "admin",
  reach: "namespace",
  logs: "calendar.put",
  once: { known: "state", leaves: "whole", against: [["calendars.put", { entries: ["2026-01-02"] }]] },
  example: { name: "holidays", entries: ["2026-12-26"] },
  summary:
    "Stores a shared calendar, or changes it. The next times of tasks that name it are computed again.",
  input: z.strictObject({
    name: given.describe("Letters, digits, dots, dashes and underscores."),
    entries: z.array(given, "not a list of texts"),
    dryRun: dryRun.describe("Store nothing, show which tasks would get another next time."),
  }),
  output: z.object({
    name: z.string(),
    outcome: z.enum(["created", "updated", "unchanged"]),
    revision: count.describe("Of a dry run: the present one; 0 if there is none."),
    replanned: count.describe("Tasks whose next time was computed again; of a dry run, all that name it."),
    moved: moved.optional().describe("With `dryRun`: tasks whose next time would change."),
  }),
  status: [200, 201],
  async run({ store, by, log }, { name, entries, dryRun }) {
    assertName(name, "name");
    const checked = checkCalendar(entries);
    const { calendars } = store;
    const present = (await calendars.list()).find((one) => one.name === name);
    const before = present?.entries;
    if (dryRun) {
      const isSame = JSON.stringify(before) === JSON.stringify(checked);
      const [replanned, moved] = await Promise.all([countUsers(store, name), movedBy(store, name, checked)]);
      return {
        name,
        outcome: before === undefined ? "created" : isSame ? "unchanged" : ("updated" as CalendarOutcome),
        revision: present?.revision ?? 0,
        ...{ replanned, moved },
      };
    }
    const stored = await calendars.put(name, entries, by);
    if (stored.outcome !== "unchanged")
      log({ calendar: name }, { before: before && shown({ entries: before }), after: shown({ entries }) });
    return { name, ...stored, replanned: await replan(store) };
  },
});
