#!/usr/bin/env node
import { Client, readEnvironment, Worker } from "@carillon/sdk";
import { pino } from "pino";
import { demoTypes } from "./types.js";

/** Most log text that is kept while it cannot be written, in bytes. */
const UNWRITTEN_LOG = 64 * 1024;

/** A worker process: two of these run next to the replicas, as in production. */
const { connection, namespace } = readEnvironment();
const logger = pino(
  { name: process.env.DEMO_WORKER ?? "worker", level: process.env.CARILLON_LOG_LEVEL ?? "info" },
  // Synchronous, because asynchronous pino would block the exit for ever if the reader has closed. Lines may be lost,
  // runs must not be.
  pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_LOG }).on("error", () => {}),
);
const client = new Client({ connection, namespace });
const types = demoTypes({
  client,
  connection,
  folder: process.env.DEMO_FOLDER ?? ".carillon/demo",
});
const worker = new Worker({ connection, namespace, types: Object.values(types), concurrency: 4, logger });

let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, async () => {
    if (stopping) process.exit(130);
    stopping = true;
    // Running jobs end gracefully, but a hanging one must not keep the process. A second signal does not wait.
    setTimeout(() => process.exit(1), 30_000).unref();
    await worker.stop({ within: 20_000 });
    await client.close();
    process.exit(0);
  });
}

await worker.start();
