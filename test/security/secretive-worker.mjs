// A worker whose task types hold secrets. Logs everything it can, one JSON line each.
import { inspect } from "node:util";
import { httpRequest, Worker } from "@carillon/sdk";
import { alertWebhook } from "@carillon/sdk/http";

const { REDIS_URL, CARILLON_NAMESPACE, SIGNING_KEY } = process.env;
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
/** Prints more than any real logger. */
const log = (details, msg) => say({ msg, details: inspect(details, { depth: 10, showHidden: true }) });
const logger = { debug: log, info: log, warn: log, error: log };
const types = [
  httpRequest({ signingKey: SIGNING_KEY, allow: ["127.0.0.1"], timeout: "2s" }),
  alertWebhook({ signingKey: SIGNING_KEY, allow: ["127.0.0.1"], timeout: "2s" }),
];
const worker = new Worker({ connection: REDIS_URL, namespace: CARILLON_NAMESPACE, types, logger });
for (const event of ["started", "settled", "crashed", "fenced"]) {
  worker.on(event, (about) => say({ event, ...about }));
}
worker.on("error", (error) => log(error, "worker"));
await worker.start();
say({ msg: "working" });
