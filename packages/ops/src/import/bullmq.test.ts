import { createHash } from "node:crypto";
import { compileSchedule, type Schedule } from "@carillon/core";
import { scheduleSchema } from "@carillon/core/internal";
import { type BullScheduler, readBullSchedulers } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { defaultRepeatStrategy as next6, Queue as Queue6 } from "bullmq";
import { defaultRepeatStrategy as next5, Queue as Queue5, Worker as Worker5 } from "bullmq-5";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";
import { convertBullmq, importBullmq } from "./bullmq.js";

const HOUR = 3_600_000;
/** BullMQ computes here, in the zone of this process. */
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const server = sharedRedis();
let redis: Redis;
const open: { close(): Promise<unknown> }[] = [];
beforeAll(() => {
  redis = new Redis(server.url);
});
afterAll(() => redis.disconnect());
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

const connection = () => ({ connection: { url: server.url } });
function queue<Made extends { close(): Promise<unknown> }>(make: () => Made): Made {
  const made = make();
  open.push(made);
  return made;
}
const queue5 = (name: string) => queue(() => new Queue5(name, connection()));
const read = async (name: string) => readBullSchedulers(redis, { queue: name });
const one = async (name: string): Promise<BullScheduler> => (await read(name))[0]!;
const options = (more: object = {}) => ({ now: Date.now(), ...more });
const compiled = (schedule: unknown) => compileSchedule(scheduleSchema.parse(schedule) as Schedule);

const soon = Math.ceil(Date.now() / HOUR) * HOUR;
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const patterns = [
  "0 9 * * 1-5",
  "*/5 * * * *",
  "30 2 * * *",
  "0 0 1,15 * 1",
  "15 10 L * *",
  "*/10 * * * * *",
  "0 0 */10 * 1",
];
const bounds = {
  startDate: maybe(fc.constantFrom(soon + HOUR, soon + 5)),
  endDate: maybe(fc.constant(soon + 900 * HOUR)),
  limit: maybe(fc.nat({ max: 9 }).map((n) => n + 1)),
};
const repeats = fc.oneof(
  fc.record({
    pattern: fc.constantFrom(...patterns),
    tz: maybe(fc.constantFrom("Europe/Berlin", "America/New_York", "UTC")),
    ...bounds,
  }),
  fc.record({
    every: fc.constantFrom(60_000, 90_000, HOUR, 24 * HOUR, 7_777),
    offset: maybe(fc.constantFrom(1_234, 30_000)),
    ...bounds,
  }),
);
const templates = fc.record({
  attempts: maybe(fc.constantFrom(1, 3, 200)),
  backoff: maybe(
    fc.constantFrom(
      1_000,
      { type: "fixed", delay: 500 },
      { type: "exponential", delay: 60_000, jitter: 0.5 },
      { type: "mine" },
    ),
  ),
  priority: maybe(fc.constantFrom(1, 7)),
  removeOnComplete: maybe(fc.constantFrom(true, 50, { age: 3_600, count: 20_000 })),
  removeOnFail: maybe(fc.constantFrom(false, 5)),
  lifo: maybe(fc.constant(true)),
  keepLogs: maybe(fc.constant(10)),
  sizeLimit: maybe(fc.constant(100_000)),
  stackTraceLimit: maybe(fc.constant(3)),
  deduplication: maybe(fc.constant({ id: "d" })),
});
const schedulers = fc.record({
  id: fc.constantFrom("plain", "import:legacy", "month end", "ä"),
  repeat: repeats,
  opts: templates,
});
/** Options that have a field of their own in a task. */
const HOMES: Record<string, string> = {
  priority: "priority",
  attempts: "retry",
  backoff: "retry",
  removeOnComplete: "retention",
  removeOnFail: "retention",
};

describe.each([
  ["5", queue5, next5],
  ["6", (name: string) => queue(() => new Queue6(name, connection())), next6],
] as const)("schedulers that BullMQ %s wrote", (version, make, next) => {
  it("become tasks of the same times, with each option kept or named", async () => {
    const bull = make(`random${version}`);
    const given = fc.sample(schedulers, { numRuns: 100, seed: 7 });
    for (const [i, { id, repeat, opts }] of given.entries()) {
      const clean = JSON.parse(JSON.stringify({ repeat, opts }));
      await bull.upsertJobScheduler(`${id}${i}`, clean.repeat, {
        name: "job",
        data: { i },
        opts: clean.opts,
      });
    }
    const found = await read(`random${version}`);
    expect(found).toHaveLength(given.length);
    const imported = importBullmq(found, options({ timezone: ZONE }));
    for (const { task, notes, from } of imported) {
      const { i } = task!.payload as { i: number };
      const { repeat, opts } = given[i]!;
      const scheduler = found.find(({ id }) => from.endsWith(`/${id}`))!;
      expect(scheduler).toMatchObject({
        alive: true,
        kind: "scheduler",
        version: expect.stringMatching(`^${version}`),
      });
      const ours = compiled({ ...task!.schedule, maxRuns: undefined });
      expect([i, ours.next(scheduler.next - 1)]).toEqual([i, scheduler.next]);
      expect(task!.schedule.maxRuns).toBe(repeat.limit);
      let [time, expected] = [scheduler.next, scheduler.next];
      for (let n = 0; n < 5 && "pattern" in repeat; n++) {
        time = ours.next(time) ?? 0;
        expected = next(expected, { ...repeat, tz: repeat.tz ?? ZONE } as never) ?? 0;
        expect([i, time]).toEqual([i, expected]);
      }
      for (const [name, value] of Object.entries(opts)) {
        if (value === undefined) continue;
        const named = notes.some(({ text }) => text.includes(name));
        const home = HOMES[name];
        const kept =
          home !== undefined &&
          (home in task! ||
            value === 1 ||
            value === false ||
            opts.attempts === undefined ||
            opts.attempts === 1);
        expect([i, name, named || kept]).toEqual([i, name, true]);
      }
      expect(notes.some(({ code }) => code === "RENAMED")).toBe(!/^plain/.test(scheduler.id));
    }
    expect(new Set(imported.map(({ task }) => task!.id)).size).toBe(given.length);
  });

  it("have as many runs left as their job says, not as the scheduler has counted", async () => {
    const name = `limits${version}`;
    const bull = make(name);
    const upsert = () => bull.upsertJobScheduler("a", { every: HOUR, limit: 3 }, { name: "job" });
    await upsert();
    expect((await one(name)).definition.left).toBe(3);
    const worker = queue(() => new Worker5(name, async () => {}, connection()));
    // An interval begins at once.
    await eventually(async () =>
      expect(await one(name)).toMatchObject({ raw: { ic: "2" }, definition: { left: 2 } }),
    );
    await worker.close();
    await upsert();
    expect(await one(name)).toMatchObject({ raw: { ic: "2" }, definition: { left: 3 } });
  });
});

describe("repeatable jobs of BullMQ 5", () => {
  it("are read with the data and options of the job to come", async () => {
    const bull = queue5("repeatables");
    await bull.add(
      "tick",
      { a: 1 },
      { repeat: { pattern: "0 9 * * *", tz: "Europe/Berlin", limit: 4 }, attempts: 2 },
    );
    await bull.add("keyed", { b: 2 }, { repeat: { every: 90_000, key: "my-key" } });
    const imported = importBullmq(await read("repeatables"), options());
    expect(imported.map(({ task }) => task).sort((a, b) => (a!.id < b!.id ? -1 : 1))).toMatchObject([
      { id: "my-key", type: "keyed", schedule: { every: "1m30s" }, payload: { b: 2 } },
      {
        id: "tick",
        schedule: { cron: "0 9 * * *", timezone: "Europe/Berlin", dialect: "cron-parser", maxRuns: 4 },
        payload: { a: 1 },
        retry: { attempts: 2 },
      },
    ]);
  });

  it("of older versions are read from their key; without a job they are dead", async () => {
    await redis.zadd(
      "bull:legacy:repeat",
      1_700_000_000_000,
      "mail:::Asia/Tokyo:0 9 * * *",
      1_700_000_000_000,
      "poll::::60000",
    );
    expect(importBullmq(await read("legacy"), options())).toMatchObject([
      {
        task: { id: "mail", schedule: { cron: "0 9 * * *", timezone: "Asia/Tokyo" } },
        notes: [{ code: "DEAD" }],
      },
      { task: { id: "poll", schedule: { every: "1m" } }, notes: [{ code: "DEAD" }] },
    ]);
  });
});

/** A repeatable as BullMQ 4 wrote it, or as 5 goes on with it: the id in its job's digest is that of the job, or of the data. */
async function writeLegacy(queue: string, name: string, jobId: string, inDigest: string, data: object) {
  const md5 = (text: string) => createHash("md5").update(text).digest("hex");
  const key = `${name}:${jobId}::UTC:0 9 * * *`;
  const id = `repeat:${md5(`${name}${inDigest}${md5(key)}`)}:${soon}`;
  await redis.zadd(`bull:${queue}:repeat`, soon, key);
  await redis.zadd(`bull:${queue}:delayed`, soon * 4_096, id);
  await redis.lpush(`bull:${queue}:wait`, `0:${soon}`);
  const opts = { attempts: 3, repeat: { pattern: "0 9 * * *", tz: "UTC", jobId, count: 1 } };
  await redis.hset(`bull:${queue}:${id}`, {
    name,
    data: JSON.stringify(data),
    opts: JSON.stringify(opts),
    rjk: key,
  });
}

it.each([
  ["with an id for its job", "mail", "custom-1", "custom-1", { a: 1 }],
  ["with colons in its name", "import:legacy:eu", "", "", { a: 1 }],
  ["with colons in both", "a:b", "c:d", "c:d", { a: 1 }],
  ["that version 5 goes on with, by the id in its data", "mail", "", "17", { id: 17 }],
])("a repeatable of BullMQ 4 %s is alive, with its data", async (title, name, jobId, inDigest, data) => {
  const queue = `legacy ${title}`;
  await writeLegacy(queue, name, jobId, inDigest, data);
  expect(importBullmq(await read(queue), options())).toMatchObject([
    {
      task: {
        ...{ id: name.replaceAll(":", "-"), payload: data, retry: { attempts: 3 } },
        schedule: { cron: "0 9 * * *", timezone: "UTC" },
      },
      notes: name.includes(":")
        ? [{ code: "RENAMED" }, { code: "RENAMED" }, { code: "RENAMED" }]
        : [{ code: "RENAMED" }],
    },
  ]);
});

it("a paused queue, and what waits in it", async () => {
  const bull = queue5("held");
  await bull.pause();
  for (const id of ["a", "b"])
    await bull.upsertJobScheduler(id, { pattern: "0 9 * * *", tz: "UTC" }, { name: id });
  expect(await one("held")).toMatchObject({ paused: true, waiting: 0 });
  await bull.add("now", {});
  await bull.add("later", {}, { delay: HOUR });
  expect(importBullmq(await read("held"), options())).toMatchObject(
    ["a", "b"].map((id) => ({
      task: { id, state: "paused" },
      notes: [{ code: "QUEUE_PAUSED" }, { code: "WAITING", text: expect.stringMatching(/^2 jobs/) }],
    })),
  );
});

it("all queues of a prefix are found", async () => {
  for (const name of ["x", "y:z"]) await redis.zadd(`{p*}:${name}:repeat`, 1, "a::::60000");
  await redis.zadd("{pp}:w:repeat", 1, "a::::60000");
  const found = await readBullSchedulers(redis, { prefix: "{p*}" });
  expect(found.map(({ queue }) => queue)).toEqual(["x", "y:z"]);
});

describe("a conversion", () => {
  const base: BullScheduler = {
    queue: "q",
    id: "a",
    kind: "scheduler",
    version: "6.7.0",
    score: soon,
    next: soon,
    jobId: "repeat:a:1",
    alive: true,
    raw: {},
    definition: { name: "job", pattern: "0 9 * * *", data: {}, opts: {} },
  };
  const convert = (definition: object, more: object = {}) =>
    convertBullmq({ ...base, ...more, definition: { ...base.definition, ...definition } }, options());

  it.each([
    ["without a zone", {}, "ZONE_ASSUMED"],
    ["with a used-up limit", { left: 0 }, "FINISHED"],
    ["with H", { pattern: "H 3 * * *", tz: "UTC" }, "RANDOM"],
    ["with a waiting list's option", { tz: "UTC", opts: { lifo: true } }, "DROPPED"],
    ["without a rule", { pattern: undefined }, "REFUSED"],
    ["with a rule that neither engine reads", { tz: "UTC", pattern: "nonsense" }, "REFUSED"],
    ["in an unknown zone", { tz: "Mars/Olympus" }, "REFUSED"],
  ])("%s says so", (_, definition, code) => {
    const [one] = importBullmq([{ ...base, definition: { ...base.definition, ...definition } }], options());
    expect(one!.notes.map(({ code }) => code)).toContain(code);
    expect(one!.task === undefined).toBe(code === "FINISHED" || code === "REFUSED");
  });

  it("computes with the library of the version that wrote it", () => {
    expect(convert({ tz: "UTC" }, { version: "5.81.5" }).theirs).toMatchObject({ library: "cron-parser 4" });
    expect(convert({ tz: "UTC" }).theirs).toMatchObject({ library: "cron-parser 5" });
  });
});
