import { assertName, checkCalendar } from "@carillon/core/internal";
import { shown } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, given } from "../shapes.js";
import { replan } from "./calendar.js";

/**
 * Stores a calendar: dates (`2026-12-25`) and calendar events (`*-05-01`), which schedules name in `except`. The next times of all
 * tasks that name it are computed again before this resolves; if it is interrupted, put the calendar again, or a node does it.
 */
export const putCalendar = operation({
  http: "PUT /calendars/:name",
  role: "admin",
  reach: "namespace",
  logs: "calendar.put",
  summary:
    "Stores a shared calendar, or changes it. The next times of tasks that name it are computed again.",
  input: z.strictObject({ name: given, entries: z.array(given, "not a list of texts") }),
  output: z.object({
    name: z.string(),
    outcome: z.enum(["created", "updated", "unchanged"]),
    revision: count,
    replanned: count.describe("Tasks whose next time was computed again."),
  }),
  status: [200, 201],
  async run({ store, by, log }, { name, entries }) {
    assertName(name, "name");
    checkCalendar(entries);
    const { calendars } = store;
    const before = (await calendars.list()).find((one) => one.name === name)?.entries;
    const stored = await calendars.put(name, entries, by);
    if (stored.outcome !== "unchanged")
      log({ calendar: name }, { before: before && shown({ entries: before }), after: shown({ entries }) });
    return { name, ...stored, replanned: await replan(store) };
  },
});
