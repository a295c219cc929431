import { run } from "../run.mjs";
import { closing, putClosing } from "./closing.mjs";

await run([closing], async (client) => {
  await putClosing(client);
  await client.trigger("daily-closing"); // not to wait for 17:00
});
