import { defineTask } from "@carillon/sdk";
import { z } from "zod";

export const reminder = defineTask("reminder", {
  queue: "reminders",
  payload: z.object({ text: z.string() }),
  handler: async ({ text }, { occurrence }) => {
    console.log(`to ${occurrence.owner}: ${text}`);
  },
});

/**
 * Call it whenever a user saves their settings. A put creates the task, changes it, or finds nothing to change. The
 * user owns the task, so every user can have one with the same id.
 *
 * @param {import("@carillon/sdk").Client} client
 * @param {string} user
 * @param {{ hour: number, timezone: string, text: string }} settings
 */
export async function saveReminder(client, user, { hour, timezone, text }) {
  await client.put(reminder, {
    id: "daily",
    owner: user,
    payload: { text },
    schedule: { cron: `0 ${hour} * * *`, timezone },
  });
}

/**
 * @param {import("@carillon/sdk").Client} client
 * @param {string} user
 */
export async function deleteReminder(client, user) {
  await client.delete({ queue: reminder.queue, owner: user, id: "daily" });
}
