import { defineTask } from "@carillon/sdk";
import { z } from "zod";

/** Days of systemd's calendar: each year's, or one year's. Tasks can also share a stored calendar: docs/schedules.md. */
const HOLIDAYS = [
  "*-01-01",
  "2027-03-26", // Good Friday
  "2027-03-29", // Easter Monday
  "*-05-01",
  "2027-05-06", // Ascension
  "2027-05-17", // Whit Monday
  "*-10-03",
  "*-12-25..26",
];

export const closing = defineTask("closing", {
  queue: "accounts",
  payload: z.object({}),
  handler: async (_payload, { occurrence }) => {
    console.log(`closing the books of ${new Date(occurrence.nominal).toISOString().slice(0, 10)}`);
  },
});

/**
 * At 17:00 on working days.
 *
 * @param {import("@carillon/sdk").Client} client
 */
export async function putClosing(client) {
  const timezone = "Europe/Berlin";
  await client.put(closing, {
    id: "daily-closing",
    payload: {},
    schedule: {
      calendar: "Mon..Fri *-*-* 17:00",
      timezone,
      except: HOLIDAYS.map((calendar) => ({ calendar, timezone })),
    },
    catchUp: "all", // a day that no node was alive on is closed later, not left out
  });
}
