import { type ChildProcess, spawn } from "node:child_process";
import { Client } from "@carillon/sdk";
import { eventually, type RedisServer, startRedis } from "@carillon/testing";
import { Queue } from "bullmq";
import { Queue as Queue5 } from "bullmq-5";
import { afterEach, beforeEach, expect, it } from "vitest";
import { blocksOf, Reader } from "./page.js";

/* docs/moving/from-bullmq.md, word for word and in its order, with real queues: each imported task runs its handler with the data of before. */

const PAGE = "docs/moving/from-bullmq.md";
const [importIt = "", store = "", changeOver = ""] = blocksOf(PAGE, "sh");
const [handlers = ""] = blocksOf(PAGE, "ts");
const [removeRepeatables = ""] = blocksOf(PAGE, "js");
const [removeSchedulers = ""] = blocksOf("docs/moving/leaving.md", "ts");

let redis: RedisServer;
let reader: Reader;
let program: ChildProcess | undefined;
let client: Client;
beforeEach(async () => {
  redis = await startRedis({ appendonly: true });
  reader = new Reader("from-bullmq", redis.url);
  client = new Client({ connection: redis.url });
});
afterEach(async () => {
  program?.kill("SIGKILL");
  await client.close();
  reader.end();
  await redis.stop();
});

/** Node and worker of the page. Returns what they print. */
function start(): () => string {
  let said = "";
  program = spawn(process.execPath, [reader.write("handlers.js", handlers)], { env: reader.env });
  for (const stream of [program.stdout, program.stderr])
    stream?.on("data", (chunk) => {
      said += chunk;
    });
  return () => said;
}

/** All steps of the page, once the old queue has an hourly and a monthly schedule. */
async function move(remove: string): Promise<void> {
  expect(await reader.run(importIt)).toContain("2 of 2");
  const said = start();
  expect(await reader.run(store)).toContain("2 create");
  for (const { state } of (await client.list()).tasks) expect(state).toBe("paused");
  reader.write("remove.js", remove);
  await reader.run(`"${process.execPath}" remove.js`);
  await reader.run(changeOver);
  const { tasks } = await client.list();
  expect(tasks.map(({ state }) => state)).toEqual(["scheduled", "scheduled"]);
  for (const { id } of tasks) {
    await client.trigger(id);
    await eventually(
      async () => expect(await client.runs.list(id), said()).toMatchObject([{ outcome: "succeeded" }]),
      { timeoutMs: 60_000 },
    );
  }
  const printed = said().replaceAll("\\", "");
  for (const currency of ["EUR", "USD"]) expect(printed).toContain(`{"currency":"${currency}"}`);
  program?.kill("SIGTERM");
}

it("job schedulers of BullMQ 6 move, and their handlers end with the data of before", async () => {
  const queue = new Queue("billing", { connection: { url: redis.url } });
  await queue.upsertJobScheduler(
    "monthly",
    { pattern: "0 6 1 * *" },
    { name: "invoice", data: { currency: "EUR" } },
  );
  await queue.upsertJobScheduler(
    "hourly",
    { every: 3_600_000 },
    { name: "invoice", data: { currency: "USD" } },
  );
  await move(removeSchedulers);
  expect(await queue.getJobSchedulers()).toEqual([]);
  expect(await queue.getDelayedCount()).toBe(0);
  await queue.close();
});

it("repeatable jobs of BullMQ 5 move, and their handlers end with the data of before", async () => {
  const queue = new Queue5("billing", { connection: { url: redis.url } });
  await queue.add("invoice", { currency: "EUR" }, { repeat: { pattern: "0 6 1 * *" } });
  await queue.add("invoice", { currency: "USD" }, { repeat: { every: 3_600_000 } });
  const opened =
    'import { Queue } from "bullmq-5";\nconst queue = new Queue("billing", { connection: { url: "redis://localhost:6379" } });';
  await move(`${opened}\n${removeRepeatables}\nawait queue.close();\n`);
  expect(await queue.getRepeatableJobs()).toEqual([]);
  expect(await queue.getDelayedCount()).toBe(0);
  await queue.close();
});
