import type { Worked } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import type { Redis } from "ioredis";
import { beforeEach, expect, it } from "vitest";
import { LANE, onEveryEngine } from "../../../test/helpers.js";
import { FACTS } from "../src/script/facts.js";
import { Bench, QUEUE } from "./bench.js";

const HOUR = 3_600_000;

onEveryEngine("the number of an attempt", (connection) => {
  const bench = Bench.use(connection);
  let run: string;
  beforeEach(async () => {
    await bench.put({
      id: "t",
      schedule: { every: "1h" },
      overlap: "allow",
      crash: { delay: "10m", attempts: 3 },
    });
    run = await bench.run("t");
  });

  const name = () => bench.name("t");
  const client = () => internalsOf(bench.store).link.client as Redis;
  const start = (by?: Partial<Worked>) => bench.begin(name(), run, by);
  const begin = (by?: Partial<Worked>) => bench.begun(name(), run, by);
  const settle = (fence: number, end: { outcome?: "failed" | "succeeded"; error?: string } = {}) =>
    bench.settle(name(), run, fence, { outcome: undefined, ...end });
  const attempts = async () =>
    (await bench.store.runs.attempts(QUEUE, run)).map((one) => [one.attempt, one.worker]);
  const counted = async () => (await bench.store.runs.stats(name()))["attempts"];

  it("has no gap if workers died that only postponed the job, or had not started it", async () => {
    // Two workers died before they could report a start: BullMQ has counted both.
    expect(await begin({ worker: "w3", attempt: 3 })).toMatchObject({ attempt: 1 });
    for (const n of [4, 5, 6]) {
      expect(await start({ worker: `w${n}`, attempt: n })).toMatchObject({ word: "WAIT" });
    }
    await bench.clock.advance(600_000);
    expect(await begin({ worker: "w7", attempt: 7 })).toMatchObject({ attempt: 2, crashes: 1 });
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ attempts: 2, crashes: 1 });
    expect(await attempts()).toEqual([
      [1, "w3"],
      [2, "w7"],
    ]);
    expect(await counted()).toBe("2");
  });

  it("is refused to a worker that has lost the job, and its new holder does not count as dead", async () => {
    const lock = `${internalsOf(bench.store).keys.queue(QUEUE).job(run)}:lock`;
    await client().set(lock, "second");
    const { fence } = await begin({ worker: "w2", token: "second" });
    const before = await bench.dump();
    expect(await start({ token: "first" })).toEqual({ word: "LOST" });
    await client().del(lock);
    expect(await start({ token: "first" })).toEqual({ word: "LOST" });
    delete before[lock];
    expect(await bench.dump()).toEqual(before);
    expect(await settle(fence, { outcome: "failed", error: "no" })).toBe("OK");
  });

  it("does not begin in a record of a newer format: worker, fast turn and node leave it alone", async () => {
    const { link, keys } = internalsOf(bench.store);
    const record = keys.queue(QUEUE).run(run);
    await link.ask((own) => own.hset(record, "v", String(FACTS.runFormat + 1)));
    const [lane] = bench.store.runs.lanes(QUEUE, LANE);
    expect((await lane?.next(1)([]))?.jobs.map(([id, , , started]) => [id, started])).toEqual([
      [run, undefined],
    ]);
    const before = await link.ask((own) => own.hgetall(record));
    const stats = await bench.store.runs.stats(name());
    const [until, now] = [bench.clock.now + FACTS.newerWait, bench.clock.now];
    const format = String(FACTS.runFormat + 1);
    expect(await start()).toEqual({ word: "NEWER", until, now, format });
    // Its job is over: a node would settle the run.
    await client().del(keys.queue(QUEUE).job(run));
    await bench.clock.advance(HOUR);
    expect(await bench.reconcile()).toEqual([]);
    expect(await link.ask((own) => own.hgetall(record))).toEqual(before);
    expect(await bench.store.runs.stats(name())).toEqual(stats);
    await link.ask((own) => own.hset(record, "v", String(FACTS.runFormat)));
    await bench.clock.advance(HOUR);
    expect(await bench.reconcile()).toEqual([[run, "lost"]]);
  });

  it("is the same if its start is sent again", async () => {
    await begin();
    await start({ worker: "w2", attempt: 2 });
    await bench.clock.advance(600_000);
    // The worker that postponed it before has died.
    const by = { worker: "w3", attempt: 3 };
    const first = await begin(by);
    await bench.clock.advance(1);
    expect(await begin(by)).toMatchObject({ attempt: 2, fence: first.fence, crashes: 1 });
    expect(await counted()).toBe("2");
  });

  it.each([
    ["another worker", { worker: "w2", attempt: 1 }],
    ["the same worker, which had its job taken away", { worker: "w", attempt: 2 }],
  ])("grows if %s starts it: the attempt before has crashed", async (_who, by) => {
    await begin();
    expect(await start(by)).toMatchObject({ word: "WAIT", until: bench.clock.now + 600_000 });
    await bench.clock.advance(600_000);
    expect(await begin(by)).toMatchObject({ attempt: 2, crashes: 1 });
  });

  it("waits five minutes after a crash by default", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow" });
    await begin();
    expect(await start({ worker: "w2" })).toMatchObject({ word: "WAIT", until: bench.clock.now + 300_000 });
  });

  it("keeps the time at which it failed if its end is sent again later", async () => {
    const { fence } = await begin();
    expect(await settle(fence, { error: "no" })).toBe("OK");
    const clockOf = (key: string) => key.endsWith("~clock");
    const kept = async () => Object.entries(await bench.dump()).filter(([key]) => !clockOf(key));
    const before = await kept();
    await bench.clock.advance(1_000);
    expect(await settle(fence, { error: "no" })).toBe("OK");
    expect(await kept()).toEqual(before);
  });

  it("is the same if the job was handed back or its items are done: nothing is counted", async () => {
    const first = await begin();
    const since = bench.clock.now;
    expect(await settle(first.fence)).toBe("OK");
    await bench.clock.advance(1_000);
    const second = await begin({ worker: "w2" });
    expect(await bench.store.runs.attempts(QUEUE, run)).toMatchObject([{ started: since, worker: "w2" }]);
    expect(second).toMatchObject({ attempt: 1 });
    expect(second.fence).toBeGreaterThan(first.fence);
    expect(await attempts()).toEqual([[1, "w2"]]);
    expect(await counted()).toBe("1");
    // Counted once: after a failure or a crash the next attempt is another one.
    await settle(second.fence, { error: "no" });
    expect(await begin({ attempt: 2, made: 1 })).toMatchObject({ attempt: 2 });
    await start({ worker: "w2", attempt: 3, made: 1 });
    await bench.clock.advance(600_000);
    expect(await begin({ worker: "w2", attempt: 3, made: 1 })).toMatchObject({ attempt: 3 });
    expect(await counted()).toBe("3");
  });

  it.each([
    ["its worker", true],
    ["a plain worker that it was handed back to", false],
  ])(
    "continues if the job that %s failed is retried from outside with its attempts reset",
    async (_who, own) => {
      const { fence } = await begin();
      await settle(fence, own ? { outcome: "failed", error: "no" } : {});
      const { job, bull } = internalsOf(bench.store).keys.queue(QUEUE);
      await client().lrem(`${bull}wait`, 0, run);
      const end = {
        finishedOn: String(bench.clock.now),
        failedReason: "no",
        stacktrace: '["Error: no"]',
        atm: 1,
      };
      await client().hset(job(run), end);
      await client().zadd(`${bull}failed`, bench.clock.now, run);
      await bench.clock.advance(HOUR);
      if (!own) expect(await bench.reconcile()).toEqual([[run, "failed"]]);
      await (await bench.queue().getJob(run))?.retry("failed", { resetAttemptsMade: true });
      expect(await begin({ worker: "w2" })).toMatchObject({ attempt: 2 });
      expect(await attempts()).toEqual([
        [1, "w"],
        [2, "w2"],
      ]);
    },
  );

  it.each(["after", "before"])(
    "does not begin if a plain worker that took the job over failed %s its end, and BullMQ tries it again",
    async (when) => {
      const { fence } = await begin();
      const end = () => settle(fence, { outcome: "succeeded" });
      if (when === "after") await end();
      const { job } = internalsOf(bench.store).keys.queue(QUEUE);
      await client().hset(job(run), { failedReason: "no", stacktrace: '["Error: no"]', atm: 1 });
      if (when === "before") await end();
      expect(await start({ worker: "w2", made: 1 })).toMatchObject({ word: "FINAL", outcome: "succeeded" });
    },
  );

  it("begins if the job had failed for good before the run's end, and is retried from outside", async () => {
    const { fence } = await begin();
    const { job, bull } = internalsOf(bench.store).keys.queue(QUEUE);
    await client().lrem(`${bull}wait`, 0, run);
    const failed = { failedReason: "no", stacktrace: '["Error: no"]', atm: 1, finishedOn: bench.clock.now };
    await client().hset(job(run), failed);
    await client().zadd(`${bull}failed`, bench.clock.now, run);
    await settle(fence, { outcome: "succeeded" });
    await (await bench.queue().getJob(run))?.retry("failed");
    expect(await begin({ worker: "w2", made: 1 })).toMatchObject({ attempt: 2 });
  });

  it("is higher than the attempts of plain workers", async () => {
    const { fence } = await begin({ attempt: 3, made: 2 });
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ attempts: 3 });
    await settle(fence, { error: "no" });
    expect(await begin({ attempt: 6, made: 5 })).toMatchObject({ attempt: 6 });
  });

  it("continues from the record of an older version's worker", async () => {
    const key = internalsOf(bench.store).keys.queue(QUEUE).run(run);
    const older = { state: "running", fence: 7, worker: "old", attempts: 2, "a:2": "1 old 1 h" };
    await client().hset(key, older);
    expect(await start({ worker: "w2", attempt: 3 })).toMatchObject({ word: "WAIT" });
    await bench.clock.advance(600_000);
    expect(await begin({ worker: "w2", attempt: 3 })).toMatchObject({ attempt: 3 });
  });
});
