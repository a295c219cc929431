import { z } from "zod";
import { operation } from "../operation.js";
import { count } from "../shapes.js";
import { calendar, countUsers } from "./calendar.js";

export const listCalendars = operation({
  http: "GET /calendars",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the shared calendars, each with its number of entries and, unless bound to an owner, of tasks that name it.",
  input: z.strictObject({}),
  output: z.object({ calendars: z.array(calendar.extend({ entries: count, tasks: count.optional() })) }),
  async run({ store, owner }) {
    const calendars = await Promise.all(
      (await store.calendars.list()).map(async ({ entries, ...one }) => ({
        ...one,
        entries: entries.length,
        ...(owner === undefined && { tasks: await countUsers(store, one.name) }),
      })),
    );
    return { calendars };
  },
});
