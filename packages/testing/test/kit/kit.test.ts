import { Client, type Context, defineTask } from "@carillon/sdk";
import { bullPrefix } from "@carillon/store";
import { DelayedError, Queue } from "bullmq";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { sharedRedis } from "../../../../test/helpers.js";
import { type TestKit, type TestKitOptions, testKit } from "../../src/index.js";

const nothing = z.object({}).loose();
const redis = sharedRedis();
let kit: TestKit;

afterEach(() => kit?.close());

/** A task type that takes `takes` of virtual time, and notes when it starts. */
function working(takes: string | undefined, queue = "bells") {
  const started: string[] = [];
  const type = defineTask("work", {
    queue,
    payload: nothing,
    async handler(_payload, { signal }) {
      started.push(new Date().toISOString().slice(11, 19));
      if (takes) await kit.sleep(takes, { signal });
    },
  });
  return { type, started };
}

async function open(options: TestKitOptions = {}): Promise<TestKit> {
  kit = await testKit({ redis, ...options });
  return kit;
}

describe("virtual time", () => {
  it("passes from occurrence to occurrence, for Date too", async () => {
    const { type, started } = working(undefined);
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1h" }, payload: {} });
    await kit.advance("2h59m");
    expect(started).toEqual(["01:00:00", "02:00:00"]);
    await kit.advance("1 minute");
    expect(started).toEqual(["01:00:00", "02:00:00", "03:00:00"]);
    expect(new Date().toISOString()).toBe("2026-01-01T03:00:00.000Z");
    await kit.advanceTo("2026-01-02T00:00:00Z");
    await kit.expect("r").fired(24).outcome("succeeded").nextAt("2026-01-02T01:00:00Z");
    expect(kit.now).toBe(Date.parse("2026-01-02T00:00:00Z"));
  });

  it("passes in a handler by its sleeps", async () => {
    const { type } = working("10m");
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1h" }, payload: {} });
    await kit.advance("2h");
    await kit.expect("r").ranAt(["1:00:00", "2:00:00"]).finishedAt(["1:10:00"]);
    await kit.advance("10m");
    await kit.expect("r").finishedAt(["1:10:00", "2:10:00"]).outcomes(["succeeded", "succeeded"]);
  });

  it("skips an occurrence during a run, not one at its end", async () => {
    const { type } = working("2m");
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1m" }, payload: {} });
    await kit.advance("5m");
    await kit
      .expect("r")
      .firedAt(["1:00", "3:00", "5:00"])
      .firedFor(["1:00", "3:00", "5:00"])
      .skipped("overlap", 2)
      .skipped(2);
  });

  it("counts each time that nobody could claim", async () => {
    const { type } = working(undefined);
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1m" }, payload: {} });
    await kit.client.pause("r");
    await kit.advance("10m");
    await kit.expect("r").fired(0).state("paused").nextAt(undefined);
    await kit.client.resume("r", { missed: "catch-up" });
    await kit.advance(0);
    await kit.expect("r").firedFor(["10:00"]).skipped("missed", 9).state("scheduled").nextAt("11:00");
  });

  it("ends a sleep with its signal, and with it the run", async () => {
    const stop = new AbortController();
    const type = defineTask("work", {
      queue: "bells",
      payload: nothing,
      handler: () => kit.sleepUntil("5:00:00", { signal: stop.signal }),
    });
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1h" }, payload: {} });
    kit.at("1:30:00", () => stop.abort(new Error("enough")));
    await kit.advance("1h30m");
    await kit.expect("r").ranAt(["1:00:00"]).finishedAt(["1:30:00"]).outcome("failed");
    expect((await kit.history("r")).runs[0]?.error).toContain("enough");
  });

  it("ends a time limit at its time", async () => {
    const left: number[] = [];
    const type = defineTask("work", {
      queue: "bells",
      payload: nothing,
      async handler(_payload, { signal, timeLeft }: Context) {
        left.push(timeLeft());
        await kit.sleep("10s", { signal });
        left.push(timeLeft());
        await kit.sleep("1d", { signal });
      },
    });
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1h" }, timeLimit: "90s", payload: {} });
    await kit.advance("1h30m");
    await kit.expect("r").fired(1).finishedAt(["1:01:30"]).outcome("timed-out");
    expect(left).toEqual([90_000, 80_000]);
  });

  it("delivers a cancel at its time", async () => {
    const { type } = working("1d");
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1h" }, payload: {} });
    kit.at("1:20:00", async () => {
      const { runs } = await kit.history("r");
      await kit.client.runs.cancel(runs[0]?.id as string);
    });
    await kit.advance("1h30m");
    await kit.expect("r").fired(1).finishedAt(["1:20:00"]).outcome("cancelled");
  });

  it("ends sleeps that are due at one moment in the order of their starts", async () => {
    await open({});
    const order: number[] = [];
    for (const n of [1, 2, 3]) {
      kit.at("0:10", async () => {
        await kit.sleep("10s");
        order.push(n);
      });
    }
    await kit.advance("20s");
    expect(order).toEqual([1, 2, 3]);
  });

  it("lets handlers wait for each other", async () => {
    let last: Promise<void> = Promise.resolve();
    const order: string[] = [];
    const type = defineTask("work", {
      queue: "bells",
      payload: nothing,
      async handler(_payload, { occurrence: { task } }: Context) {
        const before = last;
        let leave = () => {};
        last = new Promise((resolve) => {
          leave = resolve;
        });
        await kit.idle(before);
        order.push(`${task} ${new Date().toISOString().slice(14, 19)}`);
        await kit.sleep("10s").finally(leave);
      },
    });
    await open({ types: [type] });
    for (const id of ["a", "b", "c"]) {
      await kit.client.put(type, { id, schedule: { every: "1m" }, overlap: "allow", payload: {} });
    }
    await kit.advance("90s");
    expect(order.map((line) => line.slice(2))).toEqual(["01:00", "01:10", "01:20"]);
  });

  it("passes while items wait for their type's concurrency", async () => {
    const ended: string[] = [];
    const type = defineTask("many", {
      queue: "bells",
      payload: nothing,
      concurrency: 2,
      generate: () => [1, 2, 3, 4, 5],
      async process(item) {
        await kit.sleep("10s");
        ended.push(`${item} ${new Date().toISOString().slice(14, 19)}`);
      },
    });
    await open({ types: [type], concurrency: 10 });
    await kit.client.put(type, { id: "r", schedule: { every: "1m" }, payload: {} });
    await kit.advance("110s");
    expect(ended).toEqual(["1 01:10", "2 01:10", "3 01:20", "4 01:20", "5 01:30"]);
    await kit.expect("r").finishedAt(["1:30"]).outcomes(["succeeded"]);
  });

  it("does not pass during work in real time", async () => {
    const type = defineTask("work", {
      queue: "bells",
      payload: nothing,
      handler: () => new Promise<void>((resolve) => setTimeout(resolve, 30)),
    });
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1m" }, payload: {} });
    await kit.advance("3m");
    await kit.expect("r").fired(3).finishedAt(["1:00", "2:00", "3:00"]);
  });

  it("runs triggered and enqueued tasks with advance(0)", async () => {
    const { type, started } = working(undefined);
    await open({ types: [type] });
    await kit.client.enqueue(type, {}, { id: "now" });
    await kit.client.enqueue(type, {}, { id: "later", delay: 90_000 });
    expect(started).toEqual([]);
    await kit.advance(0);
    expect(started).toEqual(["00:00:00"]);
    await kit.advance("1 day");
    expect(started).toEqual(["00:00:00", "00:01:30"]);
    await kit.expect("later").fired(1).state("finished");
  });

  it("includes queues that appear later", async () => {
    const late = defineTask("late", { queue: "others", payload: nothing, handler: () => {} });
    const { type } = working(undefined);
    await open({ types: [type, late] });
    kit.at("0:30", () => kit.client.put(late, { id: "l", schedule: { every: "1m" }, payload: {} }));
    await kit.advance("2m");
    await kit.expect("l").firedAt(["1:00", "2:00"]).outcome("succeeded");
  });
});

describe("BullMQ's own features", () => {
  let queue: Queue;
  const plain = async () => {
    await open({ worker: false });
    queue = new Queue("plain", {
      connection: { url: redis.url },
      prefix: bullPrefix(kit.namespace, "plain"),
    });
  };
  afterEach(() => queue.close());
  const now = () => new Date().toISOString().slice(11, 19);

  it("run delayed jobs and retries with backoff at their virtual time", async () => {
    await plain();
    const seen: string[] = [];
    await kit.bullWorker("plain", async (job) => {
      seen.push(`${job.name} ${now()}`);
      if (job.name === "fails") throw new Error("no");
    });
    await queue.add("late", {}, { delay: 3_600_000 });
    await queue.add("fails", {}, { attempts: 4, backoff: { type: "exponential", delay: 60_000 } });
    await kit.advance("1 day");
    expect(seen).toEqual([
      "fails 00:00:00",
      "fails 00:01:00",
      "fails 00:03:00",
      "fails 00:07:00",
      "late 01:00:00",
    ]);
  });

  it("include a job that delays itself", async () => {
    await plain();
    const seen: string[] = [];
    await kit.bullWorker("plain", async (job, token) => {
      seen.push(now());
      if (seen.length > 3) return;
      await job.moveToDelayed(Date.now() + 600_000, token);
      throw new DelayedError();
    });
    await queue.add("again", {});
    await kit.advance("1h");
    expect(seen).toEqual(["00:00:00", "00:10:00", "00:20:00", "00:30:00"]);
  });

  it("include priorities and paused queues", async () => {
    await plain();
    const seen: string[] = [];
    await kit.bullWorker("plain", async (job) => {
      seen.push(`${job.name} ${now()}`);
      await kit.sleep("1m");
    });
    await queue.pause();
    for (const priority of [3, 1, 2]) await queue.add(`p${priority}`, {}, { priority });
    await queue.add("p0", {});
    await kit.advance("1h");
    expect(seen).toEqual([]);
    await queue.resume();
    await kit.advance("1h");
    expect(seen).toEqual(["p0 01:00:00", "p1 01:01:00", "p2 01:02:00", "p3 01:03:00"]);
  });
});

describe("nodes", () => {
  it("enqueue every occurrence once, and share the work", async () => {
    await open({ nodes: 3, types: [working(undefined).type] });
    for (let i = 0; i < 5; i++) {
      await kit.client.put({ id: `t${i}`, type: "work", queue: "bells", schedule: { every: "1m" } });
    }
    await kit.advance("30m");
    const nodes = new Set<string>();
    for (let i = 0; i < 5; i++) {
      await kit.expect(`t${i}`).fired(30).skipped(0);
      for (const run of (await kit.history(`t${i}`)).runs) nodes.add(run.node);
    }
    expect([...nodes].sort()).toEqual(["node-1", "node-2", "node-3"]);
  });
});

describe("workers", () => {
  it("take nothing while paused, and continue their runs", async () => {
    const { type } = working("30s");
    await open({ types: [type], concurrency: 1 });
    await kit.client.put(type, { id: "r", schedule: { every: "1m" }, overlap: "allow", payload: {} });
    kit.at("1:10", () => kit.worker.pause());
    kit.at("3:15", () => kit.worker.resume());
    await kit.advance("5m");
    await kit
      .expect("r")
      .firedAt(["1:00", "2:00", "3:00", "4:00", "5:00"])
      .ranAt(["1:00", "3:15", "3:45", "4:15", "5:00"])
      .finishedAt(["1:30", "3:45", "4:15", "4:45"]);
  });

  it("take no job if they were idle when paused", async () => {
    const { type, started } = working(undefined);
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1m" }, overlap: "allow", payload: {} });
    await kit.advance("1m30s");
    await kit.worker.pause();
    await kit.advance("2m");
    expect(started).toEqual(["00:01:00"]);
    await kit.worker.resume();
    await kit.advance("1m");
    expect(started).toEqual(["00:01:00", "00:03:30", "00:03:30", "00:04:00"]);
  });

  it("leave a crashed one's job to the next, 30 to 60 s later, and its handler never continues", async () => {
    await open({ worker: false });
    const lines: string[] = [];
    const say = (what: string) => lines.push(`${new Date().toISOString().slice(11, 19)} ${what}`);
    const worker = await kit.bullWorker("bells", async (job) => {
      say(`attempt ${job.attemptsStarted}`);
      await kit.sleep("5m").finally(() => say("end"));
    });
    await kit.client.put({ id: "r", type: "x", queue: "bells", schedule: { every: "1h" } });
    kit.at("1:01:10", () => worker.crash());
    kit.at("1:01:40", () => worker.start());
    await kit.advance("1h30m");
    expect(lines).toEqual(["01:00:00 attempt 1", "01:02:30 attempt 2", "01:07:30 end"]);
    await kit.expect("r").fired(1).outcome("succeeded");
  });

  it("leave a crashed one's job to another that runs", async () => {
    await open({ worker: false });
    const lines: string[] = [];
    const add = (name: string) =>
      kit.bullWorker("bells", async () => {
        lines.push(`${new Date().toISOString().slice(11, 19)} ${name}`);
        await kit.sleep("5m");
      });
    const first = await add("first");
    await kit.client.put({ id: "r", type: "x", queue: "bells", schedule: { every: "1h" } });
    kit.at("1:01:00", async () => {
      await add("second");
      await first.crash();
    });
    await kit.advance("1h30m");
    expect(lines).toEqual(["01:00:00 first", "01:02:00 second"]);
  });

  it("give up a job whose workers crash twice", async () => {
    await open({ worker: false });
    const worker = await kit.bullWorker("bells", () => kit.sleep("1h"));
    await kit.client.put({ id: "r", type: "x", queue: "bells", schedule: { every: "1d" } });
    for (const minute of ["24:01:00", "24:05:00"]) {
      kit.at(minute, async () => {
        await worker.crash();
        await kit.sleep("1m");
        await worker.start();
      });
    }
    await kit.advance("1d1h");
    await kit.expect("r").fired(1).outcome("crashed");
  });

  it("start a run again after a crash, with a higher fence", async () => {
    const fences: number[] = [];
    const type = defineTask("work", {
      queue: "bells",
      payload: nothing,
      async handler(_payload, { fence }: Context) {
        fences.push(fence);
        await kit.sleep("5m");
      },
    });
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1d" }, payload: {} });
    kit.at("24:01:00", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    await kit.advance("1d12h");
    expect(fences).toHaveLength(2);
    expect(fences[1]).toBeGreaterThan(fences[0] as number);
    await kit.expect("r").fired(1).outcome("succeeded");
  });

  it("may be several plain BullMQ workers", async () => {
    await open({ worker: false });
    const by: string[] = [];
    for (const name of ["first", "second"]) {
      await kit.bullWorker("bells", async () => {
        by.push(name);
        await kit.sleep("90s");
      });
    }
    await kit.client.put({
      id: "r",
      type: "x",
      queue: "bells",
      schedule: { every: "1m" },
      overlap: "allow",
    });
    await kit.advance("10m");
    expect(by).toHaveLength(10);
    await kit.expect("r").fired(10).skipped(0);
    expect(() => kit.worker).toThrow("without a worker");
  });

  it("cannot be paused or crashed if there is none", async () => {
    await open({ types: [working(undefined).type] });
    await kit.worker.crash();
    await expect(kit.worker.pause()).rejects.toMatchObject({ code: "CONFLICT" });
    await kit.worker.start();
    await kit.worker.pause();
    await kit.worker.pause();
  });
});

describe("the same test", () => {
  /** Runs six tasks in three queues, all due at the same moments, with sleeps that end together. */
  async function trace(): Promise<string[]> {
    const lines: string[] = [];
    const say = (what: string) => lines.push(`${new Date().toISOString().slice(11, 19)} ${what}`);
    const types = ["a", "b", "c"].map((queue) =>
      defineTask(`work-${queue}`, {
        queue,
        payload: nothing,
        async handler(_payload, { occurrence: { task } }) {
          say(`${task} starts`);
          await kit.sleep("20s");
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
          say(`${task} goes on`);
          await kit.sleep("1m");
          say(`${task} ends`);
        },
      }),
    );
    await open({ types, nodes: 2 });
    for (let i = 0; i < 6; i++) {
      const type = types[i % 3] as (typeof types)[number];
      await kit.client.put(type, { id: `t${i}`, schedule: { every: "1m" }, payload: {} });
    }
    kit.at("3:00", () => kit.worker.pause());
    kit.at("4:30", () => kit.worker.resume());
    await kit.advance("6m");
    await kit.close();
    return lines;
  }

  it("has the same trace each time", async () => {
    const first = await trace();
    expect(first.length).toBeGreaterThan(40);
    // Queue by queue, whichever answers first: t0 and t3 are in queue a.
    const tasks = first.slice(0, 6).map((line) => line.slice(9, 11));
    expect(tasks.map((task) => Number(task[1]) % 3)).toEqual([0, 0, 1, 1, 2, 2]);
    for (let i = 0; i < 2; i++) expect(await trace()).toEqual(first);
  });
});

describe("while a kit is open", () => {
  it("makes Date virtual, and real again at its end", async () => {
    const before = new Date();
    await open({ start: "2030-06-01T12:00:00Z" });
    expect(Date.now()).toBe(Date.parse("2030-06-01T12:00:00Z"));
    expect(new Date().toISOString()).toBe("2030-06-01T12:00:00.000Z");
    expect(new Date(0).getTime()).toBe(0);
    expect(new Date(2020, 1, 29)).toBeInstanceOf(Date);
    expect(before).toBeInstanceOf(Date);
    expect(Date()).toContain("2030");
    class Later extends Date {}
    expect(new Later()).toBeInstanceOf(Later);
    expect(new Later().getTime()).toBe(kit.now);
    await kit.advance("90s");
    expect(Date.now()).toBe(Date.parse("2030-06-01T12:01:30Z"));
    await kit.close();
    expect(Date.now() - before.getTime()).toBeLessThan(60_000);
    expect(before).toBeInstanceOf(Date);
  });

  it("refuses another one", async () => {
    await open();
    await expect(testKit({ redis })).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("await kit.close()"),
    });
    await kit.close();
    await open();
  });

  it("closes itself at the end of a block", async () => {
    {
      await using inner = await testKit({ redis, start: "2040-01-01" });
      kit = inner;
      expect(new Date().getUTCFullYear()).toBe(2040);
    }
    expect(new Date().getUTCFullYear()).toBeLessThan(2040);
  });

  it("has a server of the same lifetime", async () => {
    kit = await testKit();
    const { pid } = kit.redis;
    expect(pid).toBeDefined();
    expect(pid).not.toBe(redis.pid);
    await kit.close();
    expect(kit.redis.pid).toBeUndefined();
  });

  it("does not see tasks of earlier kits", async () => {
    const put = () => kit.client.put({ id: "r", type: "x", queue: "bells", schedule: { every: "1m" } });
    await open({ queues: ["bells"] });
    expect((await put()).outcome).toBe("created");
    await kit.close();
    await open({ queues: ["bells"] });
    expect((await put()).outcome).toBe("created");
  });

  it("shares its time with clients for one owner", async () => {
    const { type } = working(undefined);
    await open({ types: [type] });
    const acme = new Client({ store: kit.store, owner: "acme" });
    await acme.put(type, { id: "r", schedule: { every: "1m" }, payload: {} });
    await kit.advance("2m");
    await kit.expect("acme/r").fired(2);
  });

  it("closes without waiting for handlers, and ends their sleeps", async () => {
    let ended: unknown;
    const type = defineTask("work", {
      queue: "bells",
      payload: nothing,
      handler: () =>
        kit.sleep("1d").catch((error: unknown) => {
          ended = error;
        }),
    });
    await open({ types: [type] });
    await kit.client.put(type, { id: "r", schedule: { every: "1m" }, payload: {} });
    await kit.advance("1m");
    await kit.close();
    expect(ended).toMatchObject({ message: "The test kit was closed." });
  });
});
