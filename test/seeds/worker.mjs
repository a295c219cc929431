// A worker in its own process, as an application writes it. Reports its steps, one JSON line each. Its handler
// continues when it reads a line from standard input.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { defineTask, Worker } from "@carillon/sdk";
import { z } from "zod";

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const input = createInterface({ input: process.stdin });

const ring = defineTask("ring", {
  queue: "bells",
  payload: z.object({ n: z.number() }),
  async handler({ n }, { signal }) {
    const told = once(input, "line");
    signal.addEventListener("abort", () => say({ signalled: n }));
    say({ begun: n });
    await told;
    say({ done: n, aborted: signal.aborted });
    return { rung: n };
  },
});

const worker = new Worker({
  connection: process.env.REDIS_URL,
  namespace: process.env.CARILLON_NAMESPACE,
  types: [ring],
  concurrency: 1,
  heartbeatEvery: process.env.HEARTBEAT ?? "5s",
  logger: { debug() {}, info() {}, warn() {}, error() {} },
});
worker.on("error", () => {});
await worker.start();
process.once("SIGTERM", async () => {
  const stopped = worker.stop();
  say({ stopping: true });
  await stopped;
  process.exit(0);
});
say({ working: true });
