// A worker in its own process, to be killed. Its handler and its items print, say so in a JSON line, and go on when they read a line.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { defineTask, Worker } from "@carillon/sdk";
import { z } from "zod";

const payload = z.looseObject({});
const say = (what) => process.stdout.write(`${JSON.stringify({ ...what, pid: process.pid })}\n`);
const input = createInterface({ input: process.stdin });

async function print(what, { log }) {
  log(`begun ${what}`);
  console.error(`to err ${what}`);
  const told = once(input, "line");
  say({ printed: what });
  await told;
}

const worker = new Worker({
  connection: process.env.REDIS_URL,
  namespace: process.env.CARILLON_NAMESPACE,
  types: [
    defineTask("ring", { queue: "bells", payload, handler: (_payload, context) => print("ring", context) }),
    defineTask("fan-out", {
      queue: "bells",
      payload,
      generate: () => ["first", "second"],
      process: (item, context) => print(item, context),
    }),
  ],
  concurrency: 1,
  logger: { debug() {}, info() {}, warn() {}, error() {} },
});
worker.on("error", () => {});
await worker.start();
say({ working: worker.id });
