import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { storeOf } from "@carillon/sdk/internal";
import { eventually, type TestKit } from "@carillon/testing";
import { Worker as BullWorker } from "bullmq";
import { describe, expect, test } from "vitest";
import { enqueued, SILENT } from "../helpers.js";
import { anything, PATIENCE, Stand } from "./harness.js";

const stand = Stand.use();
const START = Date.parse("2026-01-01T00:00:00Z");
const at = (seconds: number) => START + seconds * 1_000;
const bell = { id: "t", type: "ring", queue: "bells" };

describe("A1 the periodic part only submits", () => {
  test("without workers the due job waits in the queue", async () => {
    const kit = await stand.kit({ worker: false });
    const queue = stand.queue("bells");
    await kit.client.put({ ...bell, schedule: { every: "1m" }, payload: { loud: true } });
    await kit.advance("1m");
    expect(await queue.getJobCounts("waiting", "active", "completed")).toEqual({
      waiting: 1,
      active: 0,
      completed: 0,
    });
    const [job] = await queue.getWaiting();
    expect(job).toMatchObject({
      name: "ring",
      data: { payload: { loud: true }, occurrence: { nominal: at(60) } },
    });

    const rung: unknown[] = [];
    await kit.bullWorker("bells", async ({ data }) => void rung.push(data.payload));
    await kit.advance("10s");
    expect(rung).toEqual([{ loud: true }]);
    expect(await queue.getJobCounts("waiting", "completed")).toEqual({ waiting: 0, completed: 1 });
  });

  test("a busy worker does not hold up the next task", async () => {
    const long = defineTask("long", { queue: "bells", payload: anything, handler: () => kit.sleep("1h") });
    const kit = await stand.kit({ types: [long], concurrency: 1 });
    await kit.client.put(long, { id: "a", schedule: { at: at(10) }, payload: {} });
    await kit.client.put(long, { id: "b", schedule: { at: at(20) }, payload: {} });
    await kit.advance("30s");
    await kit.expect("b").firedAt(["00:20"]).ranAt([]);
    expect(await stand.queue("bells").getJobCounts("waiting", "active")).toEqual({ waiting: 1, active: 1 });
  });
});

describe("A2 due tasks fire, the earliest first", () => {
  test("a task fires at its due time, not one millisecond before", async () => {
    const kit = await stand.kit({ worker: false });
    await kit.client.put({ ...bell, schedule: { at: at(60) } });
    await kit.advanceTo(at(60) - 1);
    await kit.expect("t").fired(0).nextAt(at(60));
    await kit.advanceTo(at(60));
    await kit.expect("t").firedAt(["01:00"]).state("finished");
  });

  test("the earliest enabled task fires first", async () => {
    const kit = await stand.kit({ worker: false });
    const due: [id: string, seconds: number][] = [
      ["c", 30],
      ["off", 5],
      ["a", 10],
      ["b", 20],
    ];
    for (const [id, seconds] of due) {
      await kit.client.put({ ...bell, id, schedule: { at: at(seconds) }, enabled: id !== "off" });
    }
    expect((await operatorOf(kit.client).occurrences.upcoming()).upcoming.map(({ task }) => task.id)).toEqual(
      ["a", "b", "c"],
    );
    await kit.advance("1m");
    const jobs = await stand.queue("bells").getWaiting();
    expect(jobs.map(({ data }) => data.occurrence.task)).toEqual(["a", "b", "c"]);
    await kit.expect("off").fired(0).state("paused");
  });

  test("eight tasks that fell due 2 ms apart without a node are enqueued in that order", async () => {
    const client = stand.client();
    const start = (await stand.time()) + 2_000;
    // Names whose order is independent of their times, and so are their shards.
    const ids = ["d", "h", "a", "f", "c", "g", "b", "e"];
    const puts = await client.putMany(
      ids.map((id, n) => ({ ...bell, id, schedule: { at: start + 2 * n }, overlap: "allow" })),
    );
    expect(puts.map(({ state }) => state)).toEqual(ids.map(() => "scheduled"));
    await eventually(async () => expect(await stand.time()).toBeGreaterThan(start + 20), PATIENCE);
    const node = new Scheduler({
      connection: stand.redis.url,
      namespace: stand.namespace,
      logger: SILENT,
      unsafeRedis: "warn",
    });
    stand.later(() => node.stop());
    await node.start();
    const queue = stand.queue("bells");
    await eventually(async () => expect(await queue.getWaitingCount()).toBe(8), PATIENCE);
    // In the order in which workers take them.
    const jobs = await queue.getWaiting();
    expect(jobs.map(({ data }) => data.occurrence.task)).toEqual(ids);
  });
});

/** A node in virtual time, and the clock of its Redis. `tick` runs it, and may act before its first commit. */
async function beforeCommit(before: () => Promise<unknown>) {
  const { store, clock } = await stand.virtual("bells", START);
  const { commit } = store.claims;
  const node = new Scheduler({ store, logger: SILENT });
  const tick = async (acts = false) => {
    store.claims.commit = async (...all) => {
      if (acts) await before();
      acts = false;
      return commit.apply(store.claims, all);
    };
    await node.tick();
    store.claims.commit = commit;
  };
  return { client: new Client({ store }), clock, tick };
}

describe("A2 the clock of Redis counts", () => {
  test("it goes back by a millisecond between a decision and its commit: nothing is enqueued before its time", async () => {
    const { client, clock, tick } = await beforeCommit(() => clock.set(at(60) - 1));
    await client.put({ ...bell, schedule: { at: at(60) } });
    await clock.set(at(60));
    await tick(true);
    expect(await client.runs.list("t")).toEqual([]);
    await clock.set(at(60));
    await tick();
    expect(await client.runs.list("t")).toMatchObject([{ nominal: at(60), enqueued: at(60) }]);
  });
});

describe("A4 a run still going skips the next occurrence, and due moves on", () => {
  /** Runs take 25 s and are due every 10 s: only every third time runs. */
  async function check(kit: TestKit, { starts, most }: Work): Promise<void> {
    await kit.client.put({ ...bell, schedule: { every: "10s" } });
    await kit.advanceTo("00:20");
    expect(await kit.client.get("t")).toMatchObject({
      cursor: at(20),
      due: at(30),
      nextExecution: at(30),
    });
    expect(await kit.client.runs.skips("t")).toMatchObject([{ reason: "overlap", from: at(20), to: at(20) }]);
    await kit.advanceTo("02:00");
    await kit
      .expect("t")
      .firedFor(["00:10", "00:40", "01:10", "01:40"])
      .firedAt(["00:10", "00:40", "01:10", "01:40"])
      .skipped("overlap", 8)
      .nextAt("02:10");
    // Nothing reports the end of a foreign run: a node checks for it.
    await kit.advanceTo("02:34");
    await kit.expect("t").outcomes(["succeeded", "succeeded", "succeeded", "succeeded"]);
    expect(starts).toEqual([10, 40, 70, 100, 130].map(at));
    expect(most()).toBe(1);
  }

  /** Work of 25 s that records its starts, and how many of its runs overlap. */
  function work(kit: () => TestKit) {
    const starts: number[] = [];
    let [now, most] = [0, 0];
    const ring = async () => {
      starts.push(Date.now());
      now += 1;
      most = Math.max(most, now);
      await kit().sleep("25s");
      now -= 1;
    };
    return { ring, starts, most: () => most };
  }
  type Work = ReturnType<typeof work>;

  test("with a plain BullMQ worker, which knows nothing of Carillon", async () => {
    const load = work(() => kit);
    const kit = await stand.kit({ worker: false, nodes: 2 });
    await kit.bullWorker("bells", load.ring, { concurrency: 5 });
    await check(kit, load);
  });

  test("with Carillon's own worker", async () => {
    const load = work(() => kit);
    const type = defineTask("ring", { queue: "bells", payload: anything, handler: load.ring });
    const kit = await stand.kit({ types: [type], nodes: 2 });
    await check(kit, load);
  });
});

describe("A4 a run that came between a decision and its commit", () => {
  test("a job is retried meanwhile, by plain BullMQ: the occurrence waits for it", async () => {
    const queue = stand.queue("bells");
    const { client, clock, tick } = await beforeCommit(async () => (await queue.getJob(id))?.retry("failed"));
    await client.put({ ...bell, schedule: { every: "1m" } });
    const id = enqueued(await client.trigger("t")).run;
    const { connection, prefix = "" } = queue.opts;
    const worker = new BullWorker("bells", () => Promise.reject(new Error("no")), { connection, prefix });
    stand.later(() => worker.close());
    await eventually(async () => expect(await queue.getJobState(id)).toBe("failed"), PATIENCE);
    await worker.close();
    await clock.set(at(60));
    await tick(true);
    await tick();
    expect(await queue.getJobState(id)).toBe("waiting");
    expect(await client.get("t")).toMatchObject({ cursor: at(60), openRuns: { queued: 1 } });
    expect(await client.runs.list("t")).toHaveLength(1);
  });
});

describe("A5 times missed while every node was down collapse into one", () => {
  test("five intervals without a node give one run, and the schedule goes on", async () => {
    const { store, clock } = await stand.virtual("bells", START);
    const client = new Client({ store });
    const ring = defineTask("ring", { queue: "bells", payload: anything, handler: () => {} });
    const worker = new Worker({ store, types: [ring], logger: SILENT });
    await worker.start();
    stand.later(() => worker.stop());
    const settled = () => new Promise((resolve) => worker.once("settled", resolve));
    // A new node for each check, without anything in memory.
    const nodeLooks = () => new Scheduler({ store, logger: SILENT }).tick();

    await client.put({ ...bell, schedule: { every: "1m" } });
    await clock.set(at(60));
    const first = settled();
    await nodeLooks();
    await first;

    await clock.set(at(6 * 60 + 30));
    const second = settled();
    await nodeLooks();
    await nodeLooks();
    await second;
    const runs = await client.runs.list("t");
    expect(runs.map(({ nominal, trigger, missed }) => ({ nominal, trigger, missed }))).toEqual([
      { nominal: at(360), trigger: "catch-up", missed: { from: at(120), to: at(300) } },
      { nominal: at(60), trigger: "schedule", missed: undefined },
    ]);
    expect(await client.runs.skips("t")).toMatchObject([{ reason: "missed", from: at(120), to: at(300) }]);
    expect(await client.get("t")).toMatchObject({ cursor: at(360), nextExecution: at(420) });

    await clock.set(at(420));
    const third = settled();
    await nodeLooks();
    await third;
    expect((await client.runs.list("t"))[0]).toMatchObject({ nominal: at(420), trigger: "schedule" });
    expect(await stand.queue("bells").getCompletedCount()).toBe(3);
  });
});

describe("A8 a task is paused and resumed", () => {
  test("pauses and resumes are counted", async () => {
    const ring = defineTask("ring", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [ring] });
    await kit.client.put(ring, { id: "t", schedule: { every: "1m" }, payload: {} });
    await kit.advance("3m");
    await kit.expect("t").fired(3).state("scheduled");

    expect(await kit.client.pause("t", { note: "the tower is being painted", by: "quasimodo" })).toBe(true);
    await kit.advance("3m");
    await kit.expect("t").fired(3).state("paused").nextAt(undefined);
    // Nor does it count as late.
    expect(await storeOf(kit.client).claims.earliestDue("bells")).toBeUndefined();
    expect((await kit.client.get("t")).paused).toEqual({
      at: at(180),
      by: "quasimodo",
      note: "the tower is being painted",
    });

    expect(await kit.client.resume("t")).toBe(true);
    expect((await kit.client.get("t")).paused).toBeUndefined();
    await kit.advance("2m");
    await kit
      .expect("t")
      .firedFor(["01:00", "02:00", "03:00", "07:00", "08:00"])
      .skipped("paused", 3)
      .state("scheduled")
      .outcome("succeeded");
    // Nothing is left of the first pause.
    await kit.client.pause("t");
    expect((await kit.client.get("t")).paused).toEqual({ at: kit.now });
  });

  test("a put does not resume a task, and can put it paused", async () => {
    const kit = await stand.kit({ worker: false });
    await kit.client.put({ ...bell, schedule: { every: "1m" }, enabled: false });
    await kit.client.put({ ...bell, schedule: { every: "2m" } });
    await kit.advance("10m");
    await kit.expect("t").fired(0).state("paused");
    await kit.client.resume("t");
    await kit.advance("2m");
    await kit.expect("t").firedFor(["12:00"]);
  });
});

describe("A9 a task runs once now", () => {
  test("a trigger is recorded as manual and leaves the due time, scheduled or paused", async () => {
    const ring = defineTask("ring", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [ring] });
    await kit.client.put(ring, { id: "t", schedule: { every: "1h" }, payload: {} });
    await kit.advance("90s");

    const due = async () => {
      const { state, due, nominal, cursor, nextExecution } = await kit.client.get("t");
      return { state, due, nominal, cursor, nextExecution };
    };
    const scheduled = await due();
    expect(scheduled).toMatchObject({ state: "scheduled", due: at(3600), nextExecution: at(3600) });
    expect(await kit.client.trigger("t")).toMatchObject({ outcome: "enqueued", enqueued: at(90) });
    await kit.advance("30s");
    expect(await due()).toEqual(scheduled);

    await kit.client.pause("t");
    const paused = await due();
    expect(paused).toMatchObject({ state: "paused", due: at(3600) });
    await kit.client.trigger("t");
    await kit.advance("30s");
    expect(await due()).toEqual(paused);
    await kit.expect("t").firedAt(["01:30", "02:00"]).outcomes(["succeeded", "succeeded"]);
    const { runs } = await kit.client.runs.journal({ task: "t" });
    expect(runs.map(({ trigger, nominal }) => [trigger, nominal])).toEqual([
      ["manual", at(120)],
      ["manual", at(90)],
    ]);

    await kit.client.resume("t");
    await kit.advanceTo("1:00:00");
    await kit.expect("t").fired(3).nextAt("2:00:00");
  });
});

describe("A14 a finished one-off never fires again", () => {
  test("a task whose times are all past is stored finished, with a warning", async () => {
    const kit = await stand.kit({ worker: false, nodes: 2 });
    const past = { at: { at: "2025-12-31T23:59:59Z" }, calendar: { calendar: "2019-*-10,20 12:00" } };
    for (const [id, schedule] of Object.entries(past)) {
      const put = await kit.client.put({ ...bell, id, schedule });
      expect(put).toMatchObject({ outcome: "created", state: "finished", nextExecution: undefined });
      expect(put.warnings.map(({ code }) => code)).toContain("NO_NEXT");
    }
    await kit.advance("29 days");
    for (const id of Object.keys(past))
      await kit.expect(id).fired(0).skipped(0).state("finished").nextAt(undefined);
    expect(await stand.queue("bells").getJobCountByTypes()).toBe(0);
    expect((await operatorOf(kit.client).occurrences.upcoming()).upcoming).toEqual([]);
  });

  test("a task that has fired stays finished, even if it is put again", async () => {
    const ring = defineTask("ring", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [ring], nodes: 2 });
    const put = () => kit.client.put(ring, { id: "t", schedule: { at: at(60) }, payload: {} });
    await put();
    await kit.advance("2m");
    await kit.expect("t").firedFor(["01:00"]).outcome("succeeded").state("finished").nextAt(undefined);
    expect(await put()).toMatchObject({ outcome: "unchanged", state: "finished" });
    await kit.advance("29 days");
    await kit.expect("t").fired(1).state("finished");
  });
});

describe("A18 a manual run still going skips the next occurrence", () => {
  test("a run of 25 s, triggered at :05, skips :10 and :20, on record", async () => {
    const slow = defineTask("slow", { queue: "bells", payload: anything, handler: () => kit.sleep("25s") });
    const kit: TestKit = await stand.kit({ types: [slow] });
    await kit.client.put(slow, { id: "t", schedule: { every: "10s" }, payload: {} });
    kit.at("00:05", () => kit.client.trigger("t"));
    await kit.advanceTo("00:31");
    const runs = (await kit.client.runs.list("t")).map(({ trigger, nominal }) => [
      trigger,
      new Date(nominal).toISOString().slice(17, 19),
    ]);
    expect(runs).toEqual([
      ["schedule", "30"],
      ["manual", "05"],
    ]);
    expect(await kit.client.runs.skips("t")).toMatchObject([{ reason: "overlap", decisions: 2 }]);
  });
});

describe("A17 the queue's own limit of running jobs holds", () => {
  test("ten tasks due together, three workers, a global concurrency of two: never three at once", async () => {
    const client = stand.client();
    let [under, most, done] = [0, 0, 0];
    const slow = defineTask("slow", {
      queue: "bells",
      payload: anything,
      handler: async () => {
        under += 1;
        most = Math.max(most, under);
        // Longer than a turn of a worker that would take a third job.
        for (let n = 0; n < 50; n++) await stand.admin.ping();
        under -= 1;
        done += 1;
      },
    });
    const queue = stand.queue("bells");
    await queue.setGlobalConcurrency(2);
    const schedule = { at: new Date((await stand.time()) + 10_000).toISOString() };
    const tasks = Array.from({ length: 10 }, (_, n) => ({
      id: `t${n}`,
      type: "slow",
      queue: "bells",
      schedule,
    }));
    const puts = await client.putMany(tasks);
    expect(puts.every(({ state }) => state === "scheduled")).toBe(true);
    const on = { connection: stand.redis.url, namespace: stand.namespace, logger: SILENT };
    const scheduler = new Scheduler({ ...on, unsafeRedis: "warn" });
    await scheduler.start();
    stand.later(() => scheduler.stop());
    // All are enqueued, whatever the limit.
    await eventually(async () => expect(await queue.getWaitingCount()).toBe(10), PATIENCE);
    for (let n = 0; n < 3; n++) {
      const worker = new Worker({ ...on, types: [slow], concurrency: 4 });
      stand.later(() => worker.stop());
      await worker.start();
    }
    await eventually(() => expect(done).toBe(10), PATIENCE);
    expect(most).toBe(2);
  });
});

describe("A20 a single job has policies of its own", () => {
  test.each([undefined, "1m"])(
    "with a delay of %s: attempts, the limit of each, one alert",
    async (delay) => {
      const alerts: unknown[] = [];
      const told = defineTask("carillon.webhook", {
        queue: "carillon-alerts",
        payload: anything,
        handler: (delivery) => void alerts.push(delivery),
      });
      let begun = 0;
      const slow = defineTask("slow", {
        queue: "bells",
        payload: anything,
        handler: async (_payload, { signal }) => {
          begun += 1;
          await kit.sleep("1h", { signal });
        },
      });
      const kit = await stand.kit({ types: [slow, told] });
      const { task } = await kit.client.enqueue(
        slow,
        {},
        {
          delay,
          retry: { attempts: 3, backoff: "fixed", delay: "10s" },
          timeLimit: "5s",
          alerts: [{ on: ["failed"], url: "http://127.0.0.1/alerts" }],
        },
      );
      await kit.advance("3m");
      expect(await kit.client.runs.list(task)).toMatchObject([
        { outcome: "timed-out", attempts: 3, maxAttempts: 3 },
      ]);
      expect([begun, alerts]).toMatchObject([3, [{ alerts: [{ kind: "failed" }] }]]);
    },
  );
});
