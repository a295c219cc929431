import { once } from "node:events";
import { operatorOf } from "@carillon/ops";
import {
  bullPrefix,
  Client,
  type Context,
  defineTask,
  type JobData,
  Worker,
  type WorkerOptions,
} from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { eventually, freePort, startRedis } from "@carillon/testing";
import { Worker as BullWorker, Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { gate, SILENT, sharedRedis } from "../../../test/helpers.js";

const QUEUE = "bells";
const nothing = z.object({}).loose();
let serial = 0;

describe("the worker", () => {
  const redis = sharedRedis();
  let admin: Redis;
  let client: Client;
  let namespace: string;
  const workers: Worker[] = [];
  beforeAll(async () => {
    admin = new Redis(redis.url);
  });
  afterAll(async () => {
    admin.disconnect();
  });
  beforeEach(() => {
    serial += 1;
    namespace = `w${serial}`;
    client = new Client({ connection: redis.url, namespace });
  });
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.stop();
    await client.close();
  });

  async function work(types: WorkerOptions["types"], options: Partial<WorkerOptions> = {}): Promise<Worker> {
    const worker = new Worker({
      connection: redis.url,
      namespace,
      types,
      queues: [QUEUE],
      logger: SILENT,
      ...options,
    });
    workers.push(worker);
    await worker.start();
    return worker;
  }
  /** `events.once` would also listen to "error", and reject for a lost lock. */
  function settled(worker: Worker): Promise<{ run: string; outcome: string; ms: number; error?: string }> {
    return new Promise((resolve) => worker.once("settled", resolve));
  }
  function queue(): Queue {
    return new Queue(QUEUE, { connection: { url: redis.url }, prefix: bullPrefix(namespace, QUEUE) });
  }
  /** A task that fires in an hour, to be triggered. */
  const put = (id: string, type: string, payload: unknown = {}) =>
    client.put({ id, type, queue: QUEUE, schedule: { every: "1h" }, payload, overlap: "allow" });
  const runOf = async (id: string) => (await client.runs.list(id))[0];
  const jobKey = (id: string) => `${bullPrefix(namespace, QUEUE)}:${QUEUE}:${id}`;

  it("gives a handler of a type without a payload undefined", async () => {
    const called = gate<unknown>();
    const ring = defineTask("ring", { queue: QUEUE, handler: (none) => called.resolve(none) });
    await work([ring]);
    await client.put(ring, { id: "b", schedule: { every: "1h" } });
    await client.trigger("b");
    expect(await called.promise).toBeUndefined();
    await client.enqueue(ring, undefined);
  });

  it("takes jobs although the given ioredis client ends its commands early", async () => {
    const yours = new Redis(redis.port, { commandTimeout: 1, blockingTimeout: 1, lazyConnect: true });
    const done = gate<void>();
    const ring = defineTask("ring", { queue: QUEUE, payload: nothing, handler: () => done.resolve() });
    const worker = await work([ring], { connection: yours });
    const errors: string[] = [];
    worker.on("error", ({ message }) => errors.push(message));
    // It waits for a job, in a blocking command.
    await eventually(async () => expect(String(await admin.client("LIST"))).toMatch(/cmd=bzpopmin/));
    await put("b", "ring");
    await client.trigger("b");
    await done.promise;
    expect(errors).toEqual([]);
  });

  it("runs a handler by its type, with the schema's output and all of the context", async () => {
    const called = gate<[unknown, Context]>();
    const lines: [string, object][] = [];
    const greet = defineTask("greet", {
      queue: QUEUE,
      payload: z.object({ name: z.string(), times: z.number().default(2) }),
      handler: async (payload, context) => {
        context.log("half way", { percent: 50 });
        called.resolve([payload, context]);
        return { greeted: payload.name };
      },
    });
    const other = defineTask("other", {
      queue: QUEUE,
      payload: nothing,
      handler: () => called.reject(new Error("other")),
    });
    const worker = await work([other, greet], {
      logger: {
        debug() {},
        info: (details, message) => lines.push([message, details]),
        warn() {},
        error: (details, message) => called.reject(new Error(`${message} ${JSON.stringify(details)}`)),
      },
    });
    const end = settled(worker);
    await client.put(greet, { id: "t", schedule: { every: "1h" }, payload: { name: "Ada" } });
    const before = performance.now();
    const triggered = await client.trigger("t");
    if (triggered.outcome !== "enqueued") throw new Error("skipped");
    const [payload, context] = await called.promise;
    expect(payload).toEqual({ name: "Ada", times: 2 });
    expect(context).toMatchObject({ idempotencyKey: triggered.key, attempt: 1, fence: expect.any(Number) });
    expect(context.occurrence).toMatchObject({
      task: "t",
      owner: "system",
      queue: QUEUE,
      run: triggered.run,
    });
    expect(context.signal.aborted).toBe(false);
    expect(await end).toMatchObject({ run: triggered.run, task: "system/t", outcome: "succeeded" });
    expect((await end).ms).toBeLessThanOrEqual(Math.ceil(performance.now() - before));
    expect(lines.filter(([message]) => message !== "worker is running")).toEqual([
      ["half way", { queue: QUEUE, run: triggered.run, task: "system/t", percent: 50 }],
    ]);
    expect(await runOf("t")).toMatchObject({
      id: triggered.run,
      state: "final",
      outcome: "succeeded",
      attempts: 1,
      pid: process.pid,
      result: { greeted: "Ada" },
      key: triggered.key,
      started: expect.any(Number),
      finished: expect.any(Number),
    });
    const logs = queue();
    await eventually(async () =>
      expect((await logs.getJobLogs(triggered.run)).logs).toEqual(['half way {"percent":50}']),
    );
    await logs.close();
  });

  it("raises the fence from run to run, also after delete and put", async () => {
    const fences: number[] = [];
    const count = defineTask("count", {
      queue: QUEUE,
      payload: nothing,
      handler: (_payload, { fence }) => void fences.push(fence),
    });
    const worker = await work([count], { concurrency: 1 });
    for (let life = 0; life < 2; life++) {
      await put("t", "count");
      for (let i = 0; i < 3; i++) {
        const end = settled(worker);
        await client.trigger("t");
        await end;
      }
      await client.delete("t");
    }
    expect(fences).toHaveLength(6);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
  });

  it("checks the payload again before the handler, with a clear error", async () => {
    let called = false;
    const strict = defineTask("strict", {
      queue: QUEUE,
      payload: z.object({ n: z.number() }),
      handler: () => {
        called = true;
      },
    });
    // Stored before the worker published its schema.
    await put("t", "strict", { n: "five" });
    const worker = await work([strict]);
    const end = settled(worker);
    await client.trigger("t");
    expect(await end).toMatchObject({ outcome: "failed", error: expect.stringContaining("payload.n") });
    expect(called).toBe(false);
    expect(await runOf("t")).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("payload.n"),
    });
  });

  it("fails a run of an unknown type, with an error that names it and the known ones", async () => {
    const known = defineTask("known", { queue: QUEUE, payload: nothing, handler: () => {} });
    const worker = await work([known]);
    const end = settled(worker);
    await put("t", "unknown-kind");
    await client.trigger("t");
    const { error } = await end;
    expect(error).toContain("unknown-kind");
    expect(error).toContain("known");
    expect(await runOf("t")).toMatchObject({ state: "final", outcome: "failed" });
  });

  it("fails run and job if the handler throws", async () => {
    const broken = defineTask("broken", {
      queue: QUEUE,
      payload: nothing,
      handler: () => {
        throw new Error("no paper");
      },
    });
    const worker = await work([broken]);
    const end = settled(worker);
    await put("t", "broken");
    const triggered = await client.trigger("t");
    expect(await end).toMatchObject({ outcome: "failed" });
    expect(await runOf("t")).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("Error: no paper"),
    });
    const jobs = queue();
    const run = triggered.outcome === "enqueued" ? triggered.run : "";
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
    await jobs.close();
  });

  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  it.each<[string, (context: Context) => unknown]>([
    ["result", () => cyclic],
    ["function as a result", () => () => {}],
    ["stream as a result", () => new Response("much").body],
    ["response as a result", () => new Response("much")],
    ["Map as a result", () => new Map([[1, 2]])],
    ["result of partial()", ({ partial }) => partial(cyclic as never)],
  ])("a %s that is not JSON is a failure, the same in event, run and job", async (_what, result) => {
    const handler = (_payload: unknown, context: Context) => result(context) as never;
    const odd = defineTask("odd", { queue: QUEUE, payload: nothing, handler });
    const worker = await work([odd]);
    const end = settled(worker);
    await put("t", "odd");
    const triggered = await client.trigger("t");
    expect(await end).toMatchObject({ outcome: "failed", error: expect.stringMatching(/result/) });
    expect(await runOf("t")).toMatchObject({ state: "final", outcome: "failed" });
    const jobs = queue();
    const run = triggered.outcome === "enqueued" ? triggered.run : "";
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
    await jobs.close();
  });

  it("logs details that are not JSON", async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    const chatty = defineTask("chatty", {
      queue: QUEUE,
      payload: nothing,
      handler: (_payload, { log }) => log("look", cyclic),
    });
    const worker = await work([chatty]);
    const end = settled(worker);
    await put("t", "chatty");
    await client.trigger("t");
    expect(await end).toMatchObject({ outcome: "succeeded" });
  });

  it("skips the job of a deleted task", async () => {
    const ran: string[] = [];
    const type = defineTask("type", {
      queue: QUEUE,
      payload: nothing,
      handler: (_payload, { occurrence }) => void ran.push(occurrence.task),
    });
    await put("gone", "type");
    await put("here", "type");
    const triggered = await client.trigger("gone");
    if (triggered.outcome !== "enqueued") throw new Error("skipped");
    // Deletes the task just after a worker took its job: the task is deleted, the job stays.
    const { keys } = internalsOf(storeOf(client));
    await admin.del(keys.queue(QUEUE).task("system/gone"));
    const worker = await work([type], { concurrency: 1 });
    const end = settled(worker);
    await client.trigger("here");
    await end;
    expect(ran).toEqual(["here"]);
    const jobs = queue();
    expect(await (await jobs.getJob(triggered.run))?.isCompleted()).toBe(true);
    await jobs.close();
  });

  const own = { run: "t@1.a", key: "k", owner: "system", task: "t", queue: QUEUE };
  it.each<[string, object]>([
    ["no occurrence", { hello: 1 }],
    ["that of another run", { occurrence: { ...own, run: "t@1.b" } }],
    ["that of another queue", { occurrence: { ...own, queue: "other" } }],
    ["that of an item", { child: true, index: 0, occurrence: own }],
    ["an owner that is no name", { occurrence: { ...own, owner: "a/b" } }],
    ["a task that is no name", { occurrence: { ...own, task: "t:~" } }],
  ])("a foreign job with %s fails, with the reason", async (_what, data) => {
    let ran = false;
    const handler = () => {
      ran = true;
    };
    await work([defineTask("type", { queue: QUEUE, payload: nothing, handler })]);
    const jobs = queue();
    await jobs.add("type", data, { jobId: own.run });
    await eventually(async () => {
      expect((await jobs.getJob(own.run))?.failedReason).toMatch(/not added by Carillon/);
    });
    expect(ran).toBe(false);
    await jobs.close();
  });

  it("shares jobs with another worker, and runs each once", async () => {
    const ran: string[] = [];
    const type = defineTask("type", {
      queue: QUEUE,
      payload: z.object({ n: z.number() }),
      handler: ({ n }) => void ran.push(`n${n}`),
    });
    const pair = [await work([type]), await work([type])];
    const done = gate();
    for (const worker of pair) worker.on("settled", () => ran.length === 60 && done.resolve());
    for (let n = 0; n < 60; n++) await client.enqueue(type, { n });
    await done.promise;
    expect(ran.sort()).toEqual(Array.from({ length: 60 }, (_, n) => `n${n}`).sort());
  });

  it("waits for the running job when it stops, and takes no other", async () => {
    const started = gate();
    const finish = gate();
    const ran: number[] = [];
    const slow = defineTask("slow", {
      queue: QUEUE,
      payload: z.object({ n: z.number() }),
      handler: async ({ n }) => {
        ran.push(n);
        started.resolve();
        await finish.promise;
      },
    });
    const worker = await work([slow], { concurrency: 1 });
    const { task } = await client.enqueue(slow, { n: 1 });
    await started.promise;
    await client.enqueue(slow, { n: 2 });
    let stopped = false;
    const stopping = worker.stop().then(() => {
      stopped = true;
    });
    // The run still waits after a round trip or two.
    expect((await client.runs.list(task))[0]).toMatchObject({ state: "running" });
    expect(stopped).toBe(false);
    finish.resolve();
    await stopping;
    expect(ran).toEqual([1]);
    expect((await client.runs.list(task))[0]).toMatchObject({ state: "final", outcome: "succeeded" });
  });

  it("aborts an attempt that lost its job, and ignores its result", async () => {
    const first = gate<Context>();
    const release = gate();
    const fences: number[] = [];
    const type = defineTask("type", {
      queue: QUEUE,
      payload: nothing,
      handler: async (_payload, context) => {
        fences.push(context.fence);
        if (context.attempt > 1) return { by: "the second" };
        first.resolve(context);
        await release.promise;
        return { by: "the zombie" };
      },
    });
    const zombie = await work([type], { lockDuration: 1_000, concurrency: 1 });
    const zombieEnd = new Promise((resolve) => zombie.once("fenced", resolve));
    await client.put({
      id: "t",
      type: "type",
      queue: QUEUE,
      schedule: { every: "1h" },
      crash: { delay: "1ms" },
    });
    const triggered = await client.trigger("t");
    if (triggered.outcome !== "enqueued") throw new Error("skipped");
    const context = await first.promise;
    const aborted = context.signal.aborted ? Promise.resolve() : once(context.signal, "abort");

    // Simulates a worker whose process froze: its lock runs out, and another worker finds the job stalled and takes it.
    // (Workers take turns to check for stalled jobs, every 30 s; this one checks at once.)
    await admin.del(`${jobKey(triggered.run)}:lock`, jobKey("stalled-check"));
    const finder = new BullWorker(QUEUE, null, {
      connection: { url: redis.url },
      prefix: bullPrefix(namespace, QUEUE),
      stalledInterval: 50,
    });
    const stalled = new Promise((resolve) => finder.once("stalled", resolve));
    // The first check marks the job, the second one moves it.
    await finder.startStalledCheckTimer();
    await aborted;
    await stalled;
    const second = await work([type]);
    expect(await settled(second)).toMatchObject({ outcome: "succeeded" });
    release.resolve();
    await zombieEnd;
    expect(await runOf("t")).toMatchObject({
      state: "final",
      outcome: "succeeded",
      result: { by: "the second" },
      attempts: 2,
    });
    expect(fences).toHaveLength(2);
    expect(fences[1]).toBeGreaterThan(fences[0] as number);
    await finder.close();
  });

  it("aborts an attempt that lost its job before its own worker starts the next one", async () => {
    const seen: unknown[] = [];
    const first = gate();
    const type = defineTask("type", {
      queue: QUEUE,
      payload: nothing,
      handler: async (_payload, { attempt, signal }) => {
        seen.push(attempt);
        if (attempt > 1) return;
        first.resolve();
        if (!signal.aborted) await once(signal, "abort");
        seen.push((signal.reason as Error).name);
      },
    });
    // The job counts as stalled long before the worker would renew its lock.
    const worker = await work([type], { stalledInterval: 100 });
    const end = settled(worker);
    const schedule = { every: "1h" };
    await client.put({ id: "t", type: "type", queue: QUEUE, schedule, crash: { delay: "1ms" } });
    const triggered = await client.trigger("t");
    if (triggered.outcome !== "enqueued") throw new Error("skipped");
    await first.promise;
    await admin.del(`${jobKey(triggered.run)}:lock`);
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(seen).toEqual([1, "LockLostError", 2]);
  });

  it("runs a failed run again that is retried from outside", async () => {
    let calls = 0;
    const type = defineTask("type", {
      queue: QUEUE,
      payload: nothing,
      handler: () => {
        calls += 1;
        if (calls === 1) throw new Error("once");
      },
    });
    const worker = await work([type]);
    let end = settled(worker);
    await put("t", "type");
    const triggered = await client.trigger("t");
    if (triggered.outcome !== "enqueued") throw new Error("skipped");
    await end;
    const jobs = queue();
    const job = await eventually(async () => {
      const found = await jobs.getJob(triggered.run);
      return found && (await found.isFailed()) ? found : false;
    });
    end = settled(worker);
    await job.retry();
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(calls).toBe(2);
    const { error: _, ...run } = (await runOf("t")) ?? {};
    expect(run).toMatchObject({ state: "final", outcome: "succeeded", attempts: 2 });
    await jobs.close();
  });

  it.each([{}, { resetAttemptsMade: true }])(
    "refuses a retry from outside if the record is deleted (%o)",
    async (options) => {
      let calls = 0;
      const type = defineTask("type", {
        queue: QUEUE,
        payload: nothing,
        handler: () => {
          calls += 1;
          throw new Error("no");
        },
      });
      const worker = await work([type]);
      const end = settled(worker);
      const schedule = { every: "1h" };
      await client.put({ id: "t", type: "type", queue: QUEUE, schedule, retention: { failures: 0 } });
      const triggered = await client.trigger("t");
      if (triggered.outcome !== "enqueued") throw new Error("skipped");
      await end;
      const jobs = queue();
      const failed = async (reason: string) =>
        eventually(async () => {
          const job = await jobs.getJob(triggered.run);
          return job?.failedReason === reason && (await job.isFailed()) ? job : false;
        });
      await (await failed("no")).retry("failed", options);
      await failed(
        "This run is over, and its record is no longer kept: it cannot be done again. Trigger its task instead.",
      );
      expect(calls).toBe(1);
      expect(await client.runs.stats("t")).toMatchObject({ runs: 1, failures: 1 });
      await jobs.close();
    },
  );

  it("can be replaced by a plain BullMQ worker", async () => {
    const got = gate<{ name: string; data: JobData }>();
    const plain = new BullWorker(QUEUE, async ({ name, data }) => got.resolve({ name, data }), {
      connection: { url: redis.url },
      prefix: bullPrefix(namespace, QUEUE),
    });
    await client.put({
      id: "t",
      type: "mail",
      queue: QUEUE,
      owner: "acme",
      schedule: { every: "1h" },
      payload: { to: "ü@example.org" },
      subject: "s",
      submitter: "m",
      group: "g",
    });
    const triggered = await client.trigger("acme/t");
    if (triggered.outcome !== "enqueued") throw new Error("skipped");
    const { name, data } = await got.promise;
    const at = triggered.enqueued;
    expect({ name, data }).toEqual({
      name: "mail",
      data: {
        payload: { to: "ü@example.org" },
        occurrence: {
          key: triggered.key,
          task: "t",
          owner: "acme",
          queue: QUEUE,
          nominal: expect.any(Number),
          due: expect.any(Number),
          enqueued: at,
          generation: (await client.get("acme/t")).generation,
          trigger: "manual",
          run: triggered.run,
          subject: "s",
          submitter: "m",
          group: "g",
        },
      },
    });
    expect(Math.abs(data.occurrence.nominal - at)).toBeLessThan(60_000);
    await plain.close();
  });

  it("needs types, and takes its queues from them", () => {
    expect(() => new Worker({ connection: redis.url } as WorkerOptions)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", field: "types" }),
    );
    const type = (name: string, queueName: string) =>
      defineTask(name, { queue: queueName, payload: nothing, handler: () => {} });
    const worker = new Worker({
      connection: redis.url,
      namespace,
      types: [type("a", "q2"), type("b", "q1"), type("c", "q2")],
      queues: ["q3"],
    });
    workers.push(worker);
    expect(worker.queues).toEqual(["q1", "q2", "q3"]);
  });
});

describe("without Redis", () => {
  const type = defineTask("type", { queue: QUEUE, payload: nothing, handler: () => {} });
  const task = { id: "t", type: "type", queue: QUEUE, schedule: { every: "1h" } };

  it("a client fails calls in time with the code, and serves them once Redis is there", async () => {
    const port = await freePort();
    const client = new Client({ connection: `redis://127.0.0.1:${port}`, connectTimeout: 300 });
    for (const act of [
      () => client.put(task),
      () => client.list(),
      () => client.get("t"),
      () =>
        operatorOf(client)
          .nodes.list()
          .then(({ nodes }) => nodes),
    ]) {
      const begun = performance.now();
      await expect(act()).rejects.toMatchObject({ code: "REDIS_UNAVAILABLE", remedy: expect.any(String) });
      expect(performance.now() - begun).toBeLessThan(4_500);
    }
    const redis = await startRedis({ port });
    await eventually(async () => expect(await client.put(task)).toMatchObject({ state: "scheduled" }));
    await client.close();
    await redis.stop();
  });

  it("a worker waits for it, and continues after a restart", async () => {
    const port = await freePort();
    const logged: string[] = [];
    const worker = new Worker({
      connection: `redis://127.0.0.1:${port}`,
      types: [type],
      logger: { debug() {}, info() {}, warn() {}, error: (details) => logged.push(JSON.stringify(details)) },
    });
    const started = worker.start();
    const redis = await startRedis({ port, appendonly: true });
    await started;
    const client = new Client({ connection: redis.url });
    const first = once(worker, "settled");
    await client.enqueue(type, {});
    await first;
    await redis.kill();
    await redis.start();
    const second = once(worker, "settled");
    await eventually(() => client.enqueue(type, {}));
    expect((await second)[0]).toMatchObject({ outcome: "succeeded" });
    expect(logged.length).toBeGreaterThan(0);
    await worker.stop();
    await client.close();
    await redis.stop();
  });
});
