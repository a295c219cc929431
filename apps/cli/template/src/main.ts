import { Scheduler } from "@carillon/scheduler";
import { Client, readEnvironment, Worker } from "@carillon/sdk";
import { greet, hello } from "./tasks.ts";

// All in one process. Run as many of it as you like, or nodes and workers apart.
const settings = readEnvironment();
const node = new Scheduler(settings);
const worker = new Worker({ ...settings, types: [greet] });
const client = new Client(settings);

await Promise.all([node.start(), worker.start()]);
// A put that changes nothing does nothing, so that each start may put all tasks.
await client.putMany([hello]);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    setTimeout(() => process.exit(1), 30_000).unref(); // nothing else ends a handler that ignores its signal
    await worker.stop({ within: "20s" });
    await node.stop();
    await client.close();
  });
}
