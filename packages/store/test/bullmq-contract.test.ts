import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type RedisServer, startRedis } from "@carillon/testing";
import { type Job, UnrecoverableError, Worker } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bullAddLua, bullKeys, bullScript, JobPacker, jobOptions } from "../src/bullmq.js";
import { bullPrefix } from "../src/keys.js";
import { Bench, QUEUE, START } from "./bench.js";

/**
 * What packages/store/src/bullmq.ts leans on, all of it inside BullMQ and none of it promised. When a new version makes
 * one of these fail: read the diff of that script, mend bullmq.ts, and only then change the pin here.
 */
const REVIEW: Record<string, { sha1: string; review: string }> = {
  addStandardJob: {
    sha1: "5ab432e88830d573e2fa33392ffbd4ad25a9b100",
    review:
      "its KEYS and packed arguments, that it checks before it writes, that it returns the id or a negative number",
  },
  addPrioritizedJob: {
    sha1: "299880da0f75f0b376ee8e87d20eae62f964ac5e",
    review: "as addStandardJob, and that its keys are all in BULL_KEYS",
  },
  removeJob: {
    sha1: "574af105e7df948fdf7e5410f3190a87f037d7f3",
    review: "that it refuses a locked job with 0, answers 1, and reads no key but those under its prefix",
  },
};

describe("BullMQ's internals are those that bullmq.ts knows", () => {
  let redis: RedisServer;
  let client: Redis;
  let bench: Bench;
  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });
  beforeEach(async () => {
    bench = await Bench.open(redis.url);
    return () => bench.close();
  });

  const packer = () => new JobPacker("{ns:q}:q:");
  const options = (priority: number) => jobOptions({ priority }, START);

  it("the installed version is the pinned one, exactly", () => {
    const require = createRequire(import.meta.url);
    const installed = JSON.parse(readFileSync(require.resolve("bullmq/package.json"), "utf8")) as {
      version: string;
    };
    const own = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
      dependencies: { bullmq: string };
    };
    expect(own.dependencies.bullmq).toMatch(/^\d+\.\d+\.\d+$/);
    expect(installed.version).toBe(own.dependencies.bullmq);
  });

  it.each(Object.entries(REVIEW))("the text of %s is the reviewed one", (name, { sha1, review }) => {
    const found = createHash("sha1").update(bullScript(name)).digest("hex");
    expect(found, `BullMQ changed ${name}. Review in its diff: ${review}. Then pin ${found}.`).toBe(sha1);
  });

  it("a script that is not there is missed by name", () => {
    expect(() => bullScript("addJobOfAnotherKind")).toThrow(/addJobOfAnotherKind.*another version/);
  });

  it.each([
    ["standard", 0],
    ["prioritized", 3],
  ])("the keys of a %s add are in the order that the composite hands over", (kind, priority) => {
    const packed = packer().template("noop", options(priority));
    expect(packed.prioritized).toBe(kind === "prioritized");
    const all = bullKeys("{ns:q}:q:");
    const name = kind === "standard" ? "bullStandardKeys" : "bullPrioritizedKeys";
    const handed = new RegExp(`${name} = \\{(.*?)\\}`).exec(bullAddLua())?.[1] ?? "";
    const order = [...handed.matchAll(/K\[(\d+)\]/g)].map(([, at]) => all[Number(at) - 1]);
    expect(order).toEqual(packed.keys);
    // Nothing but these keys and the job's own is declared to Redis Cluster.
    for (const key of packed.keys) expect(all).toContain(key);
  });

  it.each([0, 3])("the packed arguments are where the scripts read them (priority %d)", (priority) => {
    const packed = packer().template("noop", options(priority));
    // Then parent key, its dependencies, parent, repeat key, deduplication, defer: nothing.
    expect(packed.args).toEqual(["{ns:q}:q:", "id", "noop", String(START)]);
    expect(packed.opts).toEqual({
      attempts: 0,
      removeOnComplete: false,
      removeOnFail: false,
      timestamp: START,
      ...(priority ? { priority } : {}),
    });
  });

  it.each([0, 7])(
    "a claimed job equals one that Queue.add made, field by field (priority %d)",
    async (priority) => {
      await bench.put({ id: "t", priority, payload: { a: "ü", n: [1, null] } });
      await bench.clock.advance(10_000);
      await bench.claim("t", "a");
      const queue = bench.queue();
      const [claimed] = await bench.jobs();
      const { data } = claimed as Job;
      const other = `{${bench.store.namespace}:other}`;
      const added = await (await otherQueue(other)).add("noop", data, {
        ...jobOptions({ priority }, bench.clock.now),
        jobId: claimed?.id as string,
      });
      const mine = `${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:`;
      const theirs = `${other}:other:`;
      const { data: text, opts, ...rest } = await client.hgetall(mine + claimed?.id);
      const { data: theirText, opts: theirOpts, ...theirRest } = await client.hgetall(theirs + added.id);
      expect(rest).toEqual(theirRest);
      expect(JSON.parse(text as string)).toEqual(JSON.parse(theirText as string));
      const { jobId: _, ...optsWithoutId } = JSON.parse(theirOpts as string) as Record<string, unknown>;
      expect(JSON.parse(opts as string)).toEqual(optsWithoutId);
      // And the queue around it: every key that the add has written.
      for (const key of ["wait", "prioritized", "marker", "id", "pc"]) {
        const [here, there] = await Promise.all([dumped(mine + key), dumped(theirs + key)]);
        expect([key, here]).toEqual([key, there]);
      }
      const events = async (prefix: string) =>
        (await client.xrange(`${prefix}events`, "-", "+")).map(([, fields]) => fields);
      expect(await events(mine)).toEqual(await events(theirs));
      expect(await client.hget(`${mine}meta`, "opts.maxLenEvents")).toBe(
        await client.hget(`${theirs}meta`, "opts.maxLenEvents"),
      );
      expect(await queue.getJobCounts()).toMatchObject(priority ? { prioritized: 1 } : { waiting: 1 });
    },
  );

  async function otherQueue(prefix: string) {
    const { Queue } = await import("bullmq");
    const queue = new Queue("other", { connection: bench.connect(), prefix });
    await queue.waitUntilReady();
    return queue;
  }
  const dumped = async (key: string) => (await client.dumpBuffer(key))?.toString("base64");

  it("a job that is added under an id that exists is not added again", async () => {
    // Our run ids are unique; this is what stands behind them.
    const queue = bench.queue();
    await queue.add("noop", {}, { jobId: "t@1.a" });
    await queue.add("noop", {}, { jobId: "t@1.a" });
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 1 });
  });

  describe("finishedOn says whether a job is over", () => {
    const finishedOn = (id: string) =>
      client.hget(`${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:${id}`, "finishedOn");

    it("set when it completes, gone when it is retried, set again", async () => {
      const queue = bench.queue();
      const { id } = (await queue.add("noop", {})) as { id: string };
      expect(await finishedOn(id)).toBeNull();
      await bench.workAll(async () => {
        expect(await finishedOn(id)).toBeNull();
      });
      expect(Number(await finishedOn(id))).toBeGreaterThan(0);
      await (await queue.getJob(id))?.retry("completed");
      expect(await finishedOn(id)).toBeNull();
      await bench.workAll();
      expect(Number(await finishedOn(id))).toBeGreaterThan(0);
    });

    it("set when it fails for good, not while an attempt is left", async () => {
      const queue = bench.queue();
      const { id } = (await queue.add("noop", {}, { attempts: 2 })) as { id: string };
      const seen: (string | null)[] = [];
      await bench.workAll(async () => {
        seen.push(await finishedOn(id));
        throw new Error("again");
      });
      expect(seen).toEqual([null, null]);
      expect(Number(await finishedOn(id))).toBeGreaterThan(0);
      await queue.retryJobs({ state: "failed" });
      expect(await finishedOn(id)).toBeNull();
      expect((await queue.getJob(id))?.attemptsMade).toBe(2);
    });

    it("set when it stalls too often, with the reason that the reconciler looks for", async () => {
      const queue = bench.queue();
      const { id } = (await queue.add("noop", {})) as { id: string };
      const worker = new Worker(QUEUE, null, {
        connection: bench.connect(),
        prefix: bullPrefix(bench.store.namespace, QUEUE),
        maxStalledCount: 0,
        stalledInterval: 50,
      });
      // Taken by a worker that dies at once: its lock is gone and nobody renews it.
      await worker.getNextJob("a-token");
      await client.del(`${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:${id}:lock`);
      const failing = new Promise<void>((resolve) => worker.once("failed", () => resolve()));
      const stalled = new Promise<void>((resolve) => worker.once("stalled", () => resolve()));
      await worker.startStalledCheckTimer();
      await Promise.race([failing, stalled]);
      // BullMQ gives it to a worker once more, which fails it without running it.
      await bench.workAll(async () => {
        throw new Error("It was run.");
      });
      const job = await queue.getJob(id);
      expect(Number(job?.finishedOn)).toBeGreaterThan(0);
      expect(job?.failedReason).toContain("stalled more than");
      await worker.close();
    });
  });

  it("attemptsMade grows when a job ends, and neither when it starts nor when it is retried from outside", async () => {
    const queue = bench.queue();
    const { id } = (await queue.add("noop", {})) as { id: string };
    const made: number[] = [];
    const fail = async (job: Job) => {
      made.push(job.attemptsMade);
      throw new UnrecoverableError("no");
    };
    await bench.workAll(fail);
    await (await queue.getJob(id))?.retry("failed");
    await bench.workAll(fail);
    expect(made).toEqual([0, 1]);
  });

  it("removeJob leaves a job that a worker holds, and takes any other", async () => {
    const queue = bench.queue();
    const { id } = (await queue.add("noop", {})) as { id: string };
    const prefix = `${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:`;
    const remove = () =>
      client.eval(bullScript("removeJob"), 2, prefix + id, `${prefix}repeat`, id, "0", prefix);
    await bench.workAll(async () => {
      expect(await remove()).toBe(0);
    });
    expect(await remove()).toBe(1);
    expect(await queue.getJob(id)).toBeUndefined();
  });
});
