// Fails a run under the middleware of docs/handlers.md; prints the run and what Sentry's SDK would have sent.
import { Client, defineTask, Worker } from "@carillon/sdk";
import * as Sentry from "@sentry/node";
import { sentry } from "./recipe.mjs";

const events = [];
Sentry.init({
  dsn: "https://key@sentry.invalid/1",
  tracesSampleRate: 0,
  beforeSend: (event) => {
    events.push(event);
    return event;
  },
  transport: () => ({ send: async () => ({ statusCode: 200 }), flush: async () => true }),
});

class Declined extends Error {
  name = "Declined";
}
const payment = defineTask("payment", {
  queue: "payments",
  handler: () => {
    throw new Declined("no funds", { cause: new Error("card expired") });
  },
});
const common = { connection: process.env.REDIS_URL, namespace: process.env.CARILLON_NAMESPACE };
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const worker = new Worker({ ...common, types: [payment], middleware: [sentry], logger: silent });
const settled = new Promise((resolve) => {
  worker.on("settled", resolve);
});
await worker.start();
const client = new Client(common);
await client.enqueue(payment, undefined, { id: "t" });
const { run } = await settled;
await worker.stop();
await client.close();
await Sentry.close(2_000);
process.stdout.write(JSON.stringify({ id: run, events }));
