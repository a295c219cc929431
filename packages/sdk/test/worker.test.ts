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
import { eventually, freePort, startRedis } from "@carillon/testing";
import { Worker as BullWorker } from "bullmq";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { enqueued, gate } from "../../../test/helpers.js";
import { Bench, next, nothing, QUEUE, typed } from "./worker/bench.js";

const bench = Bench.use("w");

describe("the worker", () => {
  const runOf = async (id: string) => (await bench.client.runs.list(id))[0];

  it("gives a handler of a type without a payload undefined", async () => {
    const called = gate<unknown>();
    const ring = defineTask("ring", { queue: QUEUE, handler: (none) => called.resolve(none) });
    await bench.work([ring]);
    await bench.client.put(ring, { id: "b", schedule: { every: "1h" } });
    await bench.client.trigger("b");
    expect(await called.promise).toBeUndefined();
    await bench.client.enqueue(ring, undefined);
  });

  it("takes jobs although the given ioredis client ends its commands early", async () => {
    const yours = new Redis(bench.redis.port, { commandTimeout: 1, blockingTimeout: 1, lazyConnect: true });
    const done = gate<void>();
    const ring = defineTask("ring", { queue: QUEUE, payload: nothing, handler: () => done.resolve() });
    const worker = await bench.work([ring], { connection: yours });
    const errors: string[] = [];
    worker.on("error", ({ message }) => errors.push(message));
    // It waits for a job, in a blocking command.
    await eventually(async () => expect(String(await bench.admin.client("LIST"))).toMatch(/cmd=bzpopmin/));
    await bench.run("b", "ring");
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
    const other = typed(() => called.reject(new Error("other")), "other");
    const worker = await bench.work([other, greet], {
      logger: {
        debug() {},
        info: (details, message) => lines.push([message, details]),
        warn() {},
        error: (details, message) => called.reject(new Error(`${message} ${JSON.stringify(details)}`)),
      },
    });
    const end = next(worker, "settled");
    await bench.client.put(greet, { id: "t", schedule: { every: "1h" }, payload: { name: "Ada" } });
    const before = performance.now();
    const triggered = enqueued(await bench.client.trigger("t"));
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
    const logs = bench.queue();
    await eventually(async () =>
      expect((await logs.getJobLogs(triggered.run)).logs).toEqual(['half way {"percent":50}']),
    );
  });

  it("raises the fence from run to run, also after delete and put", async () => {
    const fences: number[] = [];
    const count = typed(({ fence }) => void fences.push(fence), "count");
    const worker = await bench.work([count], { concurrency: 1 });
    for (let life = 0; life < 2; life++) {
      await bench.put("t", "count");
      for (let i = 0; i < 3; i++) {
        const end = next(worker, "settled");
        await bench.client.trigger("t");
        await end;
      }
      await bench.client.delete("t");
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
    await bench.put("t", "strict", { payload: { n: "five" } });
    const worker = await bench.work([strict]);
    const end = next(worker, "settled");
    await bench.client.trigger("t");
    expect(await end).toMatchObject({ outcome: "failed", error: expect.stringContaining("payload.n") });
    expect(called).toBe(false);
    expect(await runOf("t")).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("payload.n"),
    });
  });

  it("fails a run of an unknown type, with an error that names it and the known ones", async () => {
    const worker = await bench.work([typed(() => {}, "known")]);
    const end = next(worker, "settled");
    await bench.run("t", "unknown-kind");
    const { error } = await end;
    expect(error).toContain("unknown-kind");
    expect(error).toContain("known");
    expect(await runOf("t")).toMatchObject({ state: "final", outcome: "failed" });
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
    const worker = await bench.work([typed(result, "odd")]);
    const end = next(worker, "settled");
    const run = await bench.run("t", "odd");
    expect(await end).toMatchObject({ outcome: "failed", error: expect.stringMatching(/result/) });
    expect(await runOf("t")).toMatchObject({ state: "final", outcome: "failed" });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
  });

  it("logs details that are not JSON", async () => {
    const worker = await bench.work([typed(({ log }) => log("look", cyclic), "chatty")]);
    const end = next(worker, "settled");
    await bench.run("t", "chatty");
    expect(await end).toMatchObject({ outcome: "succeeded" });
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
    await bench.work([typed(handler)]);
    const jobs = bench.queue();
    await jobs.add("type", data, { jobId: own.run });
    await eventually(async () => {
      expect((await jobs.getJob(own.run))?.failedReason).toMatch(/not added by Carillon/);
    });
    expect(ran).toBe(false);
  });

  it("shares jobs with another worker, and runs each once", async () => {
    const ran: string[] = [];
    const type = defineTask("type", {
      queue: QUEUE,
      payload: z.object({ n: z.number() }),
      handler: ({ n }) => void ran.push(`n${n}`),
    });
    const pair = [await bench.work([type]), await bench.work([type])];
    const done = gate();
    for (const worker of pair) worker.on("settled", () => ran.length === 60 && done.resolve());
    for (let n = 0; n < 60; n++) await bench.client.enqueue(type, { n });
    await done.promise;
    expect(ran.sort()).toEqual(Array.from({ length: 60 }, (_, n) => `n${n}`).sort());
  });

  it("aborts an attempt that lost its job before its own worker starts the next one", async () => {
    const seen: unknown[] = [];
    const first = gate();
    const type = typed(async ({ attempt, signal }) => {
      seen.push(attempt);
      if (attempt > 1) return;
      first.resolve();
      if (!signal.aborted) await once(signal, "abort");
      seen.push((signal.reason as Error).name);
    });
    // The job counts as stalled long before the worker would renew its lock.
    const worker = await bench.work([type], { stalledInterval: 100 });
    const end = next(worker, "settled");
    const run = await bench.run("t", "type", { crash: { delay: "1ms" } });
    await first.promise;
    await bench.admin.del(`${bench.jobKey(run)}:lock`);
    expect(await end).toMatchObject({ outcome: "succeeded" });
    expect(seen).toEqual([1, "LockLostError", 2]);
  });

  it.each([{}, { resetAttemptsMade: true }])(
    "refuses a retry from outside if the record is deleted (%o)",
    async (options) => {
      let calls = 0;
      const type = typed(() => {
        calls += 1;
        throw new Error("no");
      });
      const worker = await bench.work([type]);
      const end = next(worker, "settled");
      const run = await bench.run("t", "type", { retention: { failures: 0 } });
      await end;
      const jobs = bench.queue();
      const failed = async (reason: string) =>
        eventually(async () => {
          const job = await jobs.getJob(run);
          return job?.failedReason === reason && (await job.isFailed()) ? job : false;
        });
      await (await failed("no")).retry("failed", options);
      await failed(
        "This run is over, and its record is no longer kept: it cannot be done again. Trigger its task instead.",
      );
      expect(calls).toBe(1);
      expect(await bench.client.runs.stats("t")).toMatchObject({ runs: 1, failures: 1 });
    },
  );

  it("can be replaced by a plain BullMQ worker", async () => {
    const got = gate<{ name: string; data: JobData }>();
    const plain = new BullWorker(QUEUE, async ({ name, data }) => got.resolve({ name, data }), {
      connection: { url: bench.redis.url },
      prefix: bullPrefix(bench.namespace, QUEUE),
    });
    await bench.client.put({
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
    const triggered = enqueued(await bench.client.trigger("acme/t"));
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
          generation: (await bench.client.get("acme/t")).generation,
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
    expect(() => new Worker({ connection: bench.redis.url } as WorkerOptions)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", field: "types" }),
    );
    const type = (name: string, queueName: string) =>
      defineTask(name, { queue: queueName, payload: nothing, handler: () => {} });
    const worker = new Worker({
      connection: bench.redis.url,
      types: [type("a", "q2"), type("b", "q1"), type("c", "q2")],
      queues: ["q3"],
    });
    expect(worker.queues).toEqual(["q1", "q2", "q3"]);
  });
});

describe("without Redis", () => {
  const type = typed(() => {});
  const task = { id: "t", type: "type", queue: QUEUE, schedule: { every: "1h" } };

  it("a client fails calls in time with the code, and serves them once Redis is there", async () => {
    const port = await freePort();
    const client = new Client({ connection: `redis://127.0.0.1:${port}`, connectTimeout: 300 });
    for (const act of [
      () => client.put(task),
      () => client.list(),
      () => client.get("t"),
      () => operatorOf(client).nodes.list(),
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
