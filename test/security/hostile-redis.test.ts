import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { type Client, defineTask } from "@carillon/sdk";
import { namespaceKeys } from "@carillon/store";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { enqueued, lastingKeys, SILENT } from "../helpers.js";
import { anything, PATIENCE, Stand } from "../seeds/harness.js";

/*
 * An attacker with the password of Redis writes nonsense next to the tasks: into the registry, the indexes, the
 * channels, the queue. Nodes and workers continue with valid data. (Hashes of tasks: hostile-hashes.test.ts.)
 */

const QUEUE = "bells";
const stand = Stand.use();
const DEEP = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
const ODD = ["a:b", "}:x{", "", "x".repeat(1_000), "new\nline", "\u0000", "a/b/c", "../..", "__proto__/x"];

const keysOf = () => ({
  all: namespaceKeys(stand.namespace),
  own: namespaceKeys(stand.namespace).queue(QUEUE),
});

async function node(): Promise<string[]> {
  const said: string[] = [];
  const hear = (details: object, message: string) => void said.push(`${message} ${JSON.stringify(details)}`);
  const logger = { ...SILENT, warn: hear, error: hear };
  const scheduler = new Scheduler({
    connection: stand.redis.url,
    namespace: stand.namespace,
    logger,
    rereadEvery: 200,
    heartbeatEvery: 200,
  });
  stand.later(() => scheduler.stop());
  await scheduler.start();
  return said;
}

/** Waits until each of these tasks was enqueued this many times. */
async function fires(client: Client, ids: readonly string[], times: number): Promise<void> {
  await eventually(async () => {
    const runs = await Promise.all(ids.map((id) => client.runs.list(id, { limit: 1_000 })));
    return runs.every((list) => new Set(list.map(({ nominal }) => nominal)).size >= times);
  }, PATIENCE);
}

const IDS = ["a", "b", "c", "d", "e", "f", "g", "h"];

async function put(client: Client): Promise<void> {
  await client.putMany(
    IDS.map((id) => ({
      id,
      type: "t",
      queue: QUEUE,
      schedule: { every: "200ms" },
      overlap: "allow" as const,
    })),
  );
}

describe("corrupt data alongside the tasks", () => {
  const NONSENSE: [what: string, write: () => Promise<unknown>][] = [
    [
      "among the queues",
      () => stand.admin.hset(keysOf().all.queues, Object.fromEntries(ODD.map((name) => [name, "1"]))),
    ],
    [
      "among the nodes",
      () =>
        stand.admin.hset(keysOf().all.nodes, {
          one: "{",
          two: "null",
          three: '{"id":5,"tzdata":{}}',
          four: DEEP,
          five: '{"id":"five","beat":1e400,"every":"x","tzdata":"9999z","clockOffset":null}',
        }),
    ],
    [
      "among the calendars",
      () =>
        stand.admin.hset(keysOf().all.calendars, {
          one: "",
          two: "nonsense",
          three: "1 2 3 {",
          four: `1 2 x ${DEEP}`,
          five: "1 2 x null",
          "~revision": "77",
        }),
    ],
    ["as the calendars' revision", () => stand.admin.hset(keysOf().all.calendars, "~revision", "abc")],
    ["as the time zone data", () => stand.admin.hset(keysOf().all.zones, QUEUE, "\n")],
    ["as the last audit", () => stand.admin.hset(keysOf().all.audits, QUEUE, "abc")],
    [
      "among the parts of a queue",
      () =>
        stand.admin.zadd(
          keysOf().own.next,
          ...["99", "zz", "__proto__", "-1", "", "0x1"].flatMap((part) => [0, part]),
        ),
    ],
    [
      "among the alerts",
      async () => {
        await stand.admin.rpush(
          keysOf().own.alerts,
          "{",
          "null",
          "5",
          '{"kind":5}',
          '{"kind":"failed","task":{}}',
          DEEP,
        );
        await stand.admin.zadd(keysOf().own.next, 0, "a");
      },
    ],
    [
      "among the deadlines",
      async () => {
        await stand.admin.zadd(keysOf().own.expected, ...ODD.flatMap((name) => [0, name]));
        await stand.admin.zadd(keysOf().own.next, 0, "e");
      },
    ],
    [
      "among the backfills",
      async () => {
        const { own } = keysOf();
        await stand.admin.zadd(own.backfills, 0, "x", 0, "y", 0, "z");
        await stand.admin.hset(own.backfill("y"), { task: "nobody", state: "running", at: "abc", to: "abc" });
        await stand.admin.hset(own.backfill("z"), {
          task: "system/a",
          state: "running",
          at: "abc",
          to: "1e400",
        });
        await stand.admin.zadd(own.next, 0, "b");
      },
    ],
    ["among the names", () => stand.admin.zadd(keysOf().own.tasks, ...ODD.flatMap((name) => [0, name]))],
    [
      "among what is due",
      async () => {
        for (const due of keysOf().own.dues) await stand.admin.zadd(due, ...ODD.flatMap((name) => [0, name]));
      },
    ],
    [
      "among the runs",
      async () => {
        const { own } = keysOf();
        await stand.admin.zadd(own.runs, ...[...ODD, "ghost@1.x", "@", "a@"].flatMap((name) => [0, name]));
        await stand.admin.zadd(own.next, 0, "r");
        await stand.admin.set(own.run("ghost@1.x"), "no hash");
      },
    ],
    [
      "on the channels",
      async () => {
        const { wake, cancel } = keysOf().all;
        for (const text of [
          "",
          " ",
          "a",
          `${QUEUE} 0 abc`,
          `${QUEUE} 0 -1`,
          "nosuch 0 0",
          "__proto__ 0 1",
          "x".repeat(1e6),
        ]) {
          await stand.admin.publish(wake, text);
          await stand.admin.publish(cancel, text);
        }
      },
    ],
  ];

  it.each(NONSENSE)("%s: valid tasks continue to fire and are listed", async (_, write) => {
    const client = stand.client();
    await put(client);
    await write();
    await node();
    await fires(client, IDS, 1);
    await write(); // written while a node runs
    await fires(client, IDS, 3);
    expect((await client.list()).tasks.map(({ id }) => id)).toEqual(expect.arrayContaining(IDS));
    expect((await operatorOf(client).names.list({ of: "queue" })).names).toEqual([QUEUE]);
    expect((await operatorOf(client).nodes.list()).nodes.filter(({ alive }) => alive).length).toBeGreaterThan(
      0,
    );
    (await operatorOf(client).calendars.list()).calendars;
    await operatorOf(client).occurrences.upcoming();
    await client.runs.journal();
    await client.trigger("a", { overlap: "allow" });
  });
});

describe("a foreign job", () => {
  const sound = {
    key: "k",
    task: "a",
    owner: "system",
    queue: QUEUE,
    run: "a@1.x",
    nominal: 1,
    due: 1,
    trigger: "manual",
  };
  const data = (occurrence: unknown, rest: object = {}) => ({ payload: {}, occurrence, ...rest });

  it.each<[string, unknown]>([
    ["no data", undefined],
    ["null", null],
    ["text", "text"],
    ["no occurrence", { payload: {} }],
    ["an occurrence that is none", data(5)],
    ["a run that is no text", data({ ...sound, run: { toString: 1 } })],
    ["a list as its run", data({ ...sound, run: ["a@1.x"] })],
    ["no owner", data({ ...sound, owner: undefined })],
    ["an owner that leads elsewhere", data({ ...sound, owner: "x}:{other" })],
    ["a task that leads elsewhere", data({ ...sound, task: "a\n../../b" })],
    ["another queue's name", data({ ...sound, queue: "other" })],
    ["a run of nobody", data({ ...sound, run: "ghost@1.x" })],
    ["an item of nobody", data(sound, { child: { index: 0, run: "a@1.x" } })],
    ["an item that is none", data(sound, { child: 5 })],
    ["a prototype", JSON.parse('{"__proto__":{"occurrence":{"run":"a"}},"payload":{}}')],
  ])("%s: the worker refuses it, writes nothing, and works valid jobs", async (_, given) => {
    const done: string[] = [];
    const type = defineTask("t", {
      queue: QUEUE,
      payload: anything,
      handler: (_payload, { occurrence }) => void done.push(occurrence.run),
    });
    const client = stand.client();
    await client.put({ id: "a", type: "t", queue: QUEUE, schedule: { every: "1h" }, overlap: "allow" });
    const before = await lastingKeys(stand.admin, "*~*");
    const queue = stand.queue(QUEUE);
    await queue.add("t", given, { jobId: "hostile" });
    for (const name of ["__proto__", "constructor", "unknown"]) await queue.add(name, given);
    const deep = await queue.add("t", {});
    await stand.admin.hset(queue.toKey(String(deep.id)), "data", DEEP);
    const broken = await queue.add("t", {});
    await stand.admin.hset(queue.toKey(String(broken.id)), "opts", `{"attempts":1e9,"backoff":${DEEP}}`);
    const worker = stand.worker([type]);
    await worker.start();
    await eventually(async () => {
      const { waiting, active } = await queue.getJobCounts("waiting", "active");
      return waiting === 0 && active === 0;
    }, PATIENCE);
    expect(done).toEqual([]);
    expect(await lastingKeys(stand.admin, "*~*")).toEqual(before);

    const triggered = enqueued(await client.trigger("a"));
    await eventually(async () => (await client.runs.get(triggered.run)).outcome === "succeeded", PATIENCE);
    expect(done).toEqual([triggered.run]);
  });

  it("does not affect the run that it names", async () => {
    const done: unknown[] = [];
    const type = defineTask("t", {
      queue: QUEUE,
      payload: anything,
      handler: (payload) => void done.push(payload),
    });
    const client = stand.client();
    await client.put({ id: "a", type: "t", queue: QUEUE, schedule: { every: "1h" }, payload: { own: true } });
    const triggered = enqueued(await client.trigger("a"));
    const queue = stand.queue(QUEUE);
    const occurrence = { ...sound, run: triggered.run };
    // Enters the queue before the run's own job.
    await queue.add("t", { payload: { forged: true }, occurrence }, { jobId: "forged", lifo: true });
    const worker = stand.worker([type], { concurrency: 1 });
    await worker.start();
    await eventually(async () => (await client.runs.get(triggered.run)).outcome === "succeeded", PATIENCE);
    expect(done).toEqual([{ own: true }]);
  });
});
