// A worker in its own process, to be killed or frozen. Reports its steps, one JSON line each.
import { defineTask, Worker } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { withSeams } from "@carillon/store/internal";
import { z } from "zod";

const { REDIS_URL, NAMESPACE, QUEUE, MODE, LOCK, DIES_AT } = process.env;
const payload = z.object({}).loose();
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const word = () => new Promise((resolve) => process.stdin.once("data", resolve));
const forEver = () => new Promise(() => {});

const types = [
  defineTask("once", {
    queue: QUEUE,
    payload,
    handler: async (_payload, { attempt }) => {
      say({ attempt, at: Date.now() });
      if (MODE === "hang") await forEver();
      return { attempt };
    },
  }),
  // Works until the test tells it to end.
  defineTask("told", {
    queue: QUEUE,
    payload,
    handler: async ({ swift }, { attempt, fence, signal, saveCheckpoint }) => {
      signal.addEventListener("abort", () => say({ aborted: signal.reason.name, attempt }));
      say({ attempt, fence });
      await word();
      if (swift) return { attempt };
      const saved = await saveCheckpoint({ attempt }).then(
        () => "saved",
        (error) => error.code,
      );
      say({ attempt, saved, aborted: signal.aborted });
      return { attempt };
    },
  }),
  // Works until its signal is aborted.
  defineTask("heeds", {
    queue: QUEUE,
    payload,
    handler: (_payload, { attempt, signal }) => {
      say({ attempt });
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    },
  }),
  defineTask("fails", { queue: QUEUE, payload, handler: () => Promise.reject(new Error("boom")) }),
  // Ends its process.
  defineTask("deadly", { queue: QUEUE, payload, handler: () => process.exit(1) }),
  defineTask("many", {
    queue: QUEUE,
    payload,
    generate: ({ count }) => {
      say({ generating: count });
      return Array.from({ length: count }, (_, n) => n);
    },
    process: async (item, { attempt }) => {
      say({ item, attempt });
      if (MODE === "hang") await forEver();
      if (MODE !== "seven") return;
      // Item 7 ends the process, while its neighbours are still running.
      if (item === 7) process.exit(1);
      await new Promise((resolve) => setTimeout(resolve, 50));
    },
  }),
];

const failpoint = (point) => {
  if (point !== DIES_AT) return;
  process.kill(process.pid, "SIGKILL");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
};
const store = new Store(withSeams({ connection: REDIS_URL, namespace: NAMESPACE }, { failpoint }));
const worker = new Worker({
  store,
  types,
  lockDuration: Number(LOCK),
  stalledInterval: 200,
  ...(MODE === "loud" ? {} : { logger: { debug() {}, info() {}, warn() {}, error() {} } }),
});
for (const event of ["settled", "crashed", "fenced"]) worker.on(event, (about) => say({ event, ...about }));
worker.on("error", () => {});
process.once("SIGTERM", async () => {
  await worker.stop({ within: 0 });
  await store.close();
  say({ stopped: true });
});
if (MODE === "stop") say({ ready: true });
await worker.start();
