import { parseTask } from "@carillon/core";
import { VERSION } from "@carillon/scheduler";
import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { REDIS_TIME } from "@carillon/store";
import { testKit } from "@carillon/testing";
import { z } from "zod";

/** One task is put, enqueued and run, in virtual time. */
async function main(): Promise<void> {
  const bell = defineTask("bell", {
    queue: "bells",
    payload: z.object({ strokes: z.number() }),
    handler: async ({ strokes }) => ({ rang: strokes }),
  });
  const kit = await testKit({ types: [bell] });
  try {
    const client: Client = new Client({ store: kit.store });
    await client.put(bell, { id: "bell", payload: { strokes: 3 }, schedule: { every: "1h" } });
    await kit.advance("1h");
    await kit.expect("bell").fired(1).outcome("succeeded");

    const input: TaskInput = { id: "bell", type: "bell", queue: "bells", schedule: { every: "1h" } };
    const [run] = await client.runs.list(parseTask(input).definition.id);
    console.log(JSON.stringify({ result: run?.result, version: VERSION, time: REDIS_TIME.lua.length > 0 }));
  } finally {
    await kit.close();
  }
}

void main();
