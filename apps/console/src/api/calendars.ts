import { z } from "zod";
import { CALENDAR as CALENDAR_ANSWER, CALENDARS, PUT_CALENDAR } from "./answers.js";
import { endpoint, ok } from "./route.js";

const text = z.string("not a text");
const CALENDAR = z.strictObject({ entries: z.array(text, "not a list of texts") });

/** Shared calendars. */
export const calendarEndpoints = {
  list: endpoint({ answer: CALENDARS }, async ({ client }) =>
    ok({ calendars: await client.calendars.list() }),
  ),
  get: endpoint({ answer: CALENDAR_ANSWER }, async ({ client, path }) =>
    ok(await client.calendars.get(path["name"]!)),
  ),
  put: endpoint(
    { body: CALENDAR, answer: PUT_CALENDAR, status: [200, 201] },
    async ({ client, path, body: { entries, ...options } }) => {
      const done = await client.calendars.put(path["name"]!, entries, options);
      return { status: done.outcome === "created" ? 201 : 200, body: done };
    },
  ),
  remove: endpoint({}, async ({ client, path }) => {
    await client.calendars.delete(path["name"]!);
    return { status: 204 };
  }),
};
