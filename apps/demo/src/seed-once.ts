#!/usr/bin/env node
import { fileURLToPath } from "node:url";
import { Client, readEnvironment } from "@carillon/sdk";
import { seed } from "./seed.js";
import { demoTypes } from "./types.js";

/** Stores the demo's tasks and ends; docker-compose.yml runs it next to the services. */
const environment = readEnvironment();
const client = new Client(environment);
const types = demoTypes({
  client,
  connection: environment.connection,
  folder: process.env.DEMO_FOLDER ?? ".",
});
const puts = await seed(client, types, {
  consoleUrl: process.env.DEMO_CONSOLE_URL ?? "http://127.0.0.1:3000",
  project: fileURLToPath(new URL("../../..", import.meta.url)),
});
for (const { task, outcome } of puts) console.log(`${outcome} ${task.queue} ${task.owner}/${task.id}`);
await client.close();
