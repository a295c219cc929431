import { run } from "../run.mjs";
import { deleteReminder, reminder, saveReminder } from "./reminders.mjs";

await run([reminder], async (client) => {
  await saveReminder(client, "ada", { hour: 8, timezone: "Europe/London", text: "water the plants" });
  await saveReminder(client, "grace", { hour: 7, timezone: "America/New_York", text: "feed the cat" });
  await client.trigger("ada/daily"); // not to wait until tomorrow
  await deleteReminder(client, "grace");
});
