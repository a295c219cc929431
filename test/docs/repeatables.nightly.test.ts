import { createRequire } from "node:module";
import { join } from "node:path";
import { Client } from "@carillon/sdk";
import { type RedisServer, startRedis } from "@carillon/testing";
import { Queue as Queue5 } from "bullmq-5";
import { afterEach, beforeEach, expect, it } from "vitest";
import { installed } from "../../scripts/lib/runtime.mjs";
import { Reader } from "./page.js";

/* Repeatables as the real BullMQ 4 and 5 write them, through the commands of docs/moving/from-bullmq.md: each keeps its data, options and next time. */

let redis: RedisServer;
let reader: Reader;
let client: Client;
beforeEach(async () => {
  redis = await startRedis({ appendonly: true });
  reader = new Reader("repeatables", redis.url);
  client = new Client({ connection: redis.url });
});
const queues: Queue5[] = [];
afterEach(async () => {
  await Promise.all(queues.splice(0).map((queue) => queue.close()));
  await client.close();
  reader.end();
  await redis.stop();
});

const DAY = 86_400_000;
const start = Math.ceil(Date.now() / DAY) * DAY + 400 * DAY;
const berlin = { pattern: "30 9 1 2 *", tz: "Europe/Berlin" };
const cron = { cron: "30 9 1 2 *", timezone: "Europe/Berlin" };
const monthly = { every: 30 * DAY };
const interval = { every: "30d" };
const iso = (time: number) => expect.stringMatching(new Date(time).toISOString().slice(0, 19));

/** By the name of the job: id of the task if it is another one, options of the job, and what the task has. */
const GIVEN: Record<string, { id?: string; opts: object; task: object }> = {
  cron: { opts: { repeat: berlin }, task: { schedule: cron } },
  utc: { opts: { repeat: { pattern: "0 0 9 1 1 *", utc: true } }, task: { schedule: { timezone: "UTC" } } },
  every: { opts: { repeat: monthly }, task: { schedule: interval } },
  named: { opts: { repeat: berlin, jobId: "custom-1" }, task: { schedule: cron } },
  "import:legacy:eu": { id: "import-legacy-eu", opts: { repeat: monthly }, task: { schedule: interval } },
  colons: { opts: { repeat: berlin, jobId: "c:d:7" }, task: { schedule: cron } },
  "both:of": { id: "both-of", opts: { repeat: monthly, jobId: "1:Mars:x" }, task: { schedule: interval } },
  limited: { opts: { repeat: { ...monthly, limit: 4 } }, task: { schedule: { ...interval, maxRuns: 4 } } },
  bounded: {
    opts: { repeat: { ...berlin, startDate: new Date(start), endDate: new Date(start + 2_000 * DAY) } },
    task: { schedule: { ...cron, end: iso(start + 2_000 * DAY) } },
  },
  ended: {
    opts: { repeat: { ...monthly, endDate: start } },
    task: { schedule: { ...interval, end: iso(start) } },
  },
  options: {
    opts: {
      repeat: monthly,
      attempts: 5,
      backoff: { type: "exponential", delay: 2_000 },
      priority: 3,
      removeOnComplete: 50,
    },
    task: {
      priority: 3,
      retry: { attempts: 5, backoff: "exponential", delay: "2s" },
      retention: { successes: 50 },
    },
  },
  same: { opts: { repeat: monthly, jobId: "a" }, task: { schedule: interval } },
};

const moduleOf = {
  4: async () =>
    createRequire(join(await installed("bullmq@4.18.3"), "x.js"))("bullmq").Queue as typeof Queue5,
  5: async () => Queue5,
};

it.each([4, 5] as const)(
  "repeatables that BullMQ %s made become tasks, each with all it had",
  async (major) => {
    const Queue = await moduleOf[major]();
    const connection = { connection: { url: redis.url, port: Number(new URL(redis.url).port) } };
    const [plain, busy, held] = ["plain", "busy", "held"].map((name) => new Queue(name, connection));
    const hashed = new Queue("hashed", { ...connection, settings: { repeatKeyHashAlgorithm: "sha256" } });
    queues.push(plain!, busy!, held!, hashed);
    const data = (name: string) => ({ of: name, id: 17, nested: { list: [1, "ä"] } });
    for (const [name, { opts }] of Object.entries(GIVEN)) await plain!.add(name, data(name), opts);
    await busy!.add("tick", data("tick"), { repeat: berlin });
    for (const name of ["now", "next"]) await busy!.add(name, {});
    await busy!.add("later", {}, { delay: 3_600_000 });
    await held!.pause();
    await held!.add("rest", data("rest"), { repeat: berlin });
    const begun = await held!.add("begun", data("begun"), { repeat: { ...monthly, immediately: true } });
    await hashed.add("sha", data("sha"), { repeat: monthly });
    // BullMQ 4 has no keys of its caller.
    await hashed.add("keyed", data("keyed"), { repeat: { ...berlin, key: "of:its:caller" } });
    const delayed = await Promise.all(queues.map((queue) => queue.getDelayed()));
    const due = new Map(
      delayed.flat().map((job) => [job.name, Math.max(job.timestamp + job.delay, job.opts.prevMillis ?? 0)]),
    );

    const report = JSON.parse(
      await reader.run("carillon import bullmq --bullmq redis://localhost:6379 --timezone UTC --json"),
    ) as { schedules: { task?: { type: string }; notes: { code: string; text: string }[] }[] };
    const noted = report.schedules.flatMap(({ task, notes }) =>
      notes
        .filter(({ code }) => code !== "RENAMED")
        .map(({ code, text }) => [task?.type, code, text.slice(0, 7)]),
    );
    expect(noted.sort()).toEqual([
      ["begun", "QUEUE_PAUSED", "Its que"],
      ["rest", "QUEUE_PAUSED", "Its que"],
      ["tick", "WAITING", "3 jobs "],
    ]);
    const { prevMillis = 0, repeat } = begun.opts;
    due.set("begun", prevMillis + repeat!.offset! + monthly.every);
    await reader.run("carillon apply");
    await reader.run("carillon resume --all --set bullmq");
    const { tasks } = await client.list();
    const yearly = { opts: {}, task: { schedule: cron } };
    const keyed = { ...yearly, id: major === 4 ? "keyed" : "of-its-caller" };
    const other = { opts: {}, task: { schedule: interval } };
    const all: typeof GIVEN = { ...GIVEN, tick: yearly, rest: yearly, keyed, sha: other, begun: other };
    expect(tasks).toHaveLength(Object.keys(all).length);
    for (const [name, { id = name, task }] of Object.entries(all)) {
      const { nextExecution, ...found } = (await client.get(id))!;
      expect(found).toMatchObject({ id, type: name.replaceAll(":", "-"), payload: data(name), ...task });
      expect([name, nextExecution]).toEqual([name, due.get(name)]);
    }
  },
);
