import { defineTask, type Logger, Worker, type WorkerOptions } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { storeOf } from "@carillon/store/internal";
import { eventually, freePort, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { attempt, gate } from "../../../../test/helpers.js";
import { aborted, Bench, HandClock, nothing, QUEUE, typed } from "./bench.js";
import { Lives } from "./lives.js";

const bench = Bench.use("logs");
const lives = Lives.use(bench);

interface Line {
  level: keyof Logger;
  message: string;
  [detail: string]: unknown;
}

/** A logger that records its lines. */
function recorder() {
  const lines: Line[] = [];
  const log = (level: keyof Logger) => (details: object, message: string) =>
    void lines.push({ level, message, ...details });
  const logger: Logger = { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  const logged = (part: Partial<Line>) =>
    eventually(() => {
      const fits = (line: Line) => Object.keys(part).every((key) => line[key] === part[key]);
      return lines.find(fits) ?? Promise.reject(new Error(JSON.stringify(lines, null, 1)));
    });
  return { lines, logger, logged };
}

const type = (handler: () => unknown) =>
  defineTask("type", { queue: QUEUE, payload: nothing, handler: handler as () => null });

describe("a worker logs", () => {
  it("each attempt that failed as a warning, and the failed run as an error", async () => {
    const { lines, logger, logged } = recorder();
    await bench.work([type(() => Promise.reject(new Error("boom")))], { logger });
    const run = await bench.run("t", "type", { retry: { attempts: 2, delay: "1ms" } });
    const about = { queue: QUEUE, task: "system/t", run };
    const error = expect.stringMatching(/^Error: boom\n +at .*logs\.test/);
    expect(await logged({ message: "run failed" })).toEqual({
      level: "error",
      message: "run failed",
      ...about,
      attempt: 2,
      outcome: "failed",
      error,
      ms: expect.any(Number),
    });
    expect(await logged({ message: "attempt failed" })).toEqual({
      level: "warn",
      message: "attempt failed",
      ...about,
      attempt: 1,
      outcome: "retrying",
      error,
      ms: expect.any(Number),
    });
    expect(lines.filter(({ level }) => level === "warn" || level === "error")).toHaveLength(2);
  });

  it.each([
    ["an unknown type", "nobody", {}, /No handler for task type nobody; this worker has type/],
    ["a payload that does not fit its type", "strict", {}, /payload/],
    ["a result that is not JSON", "big", {}, /The handler's result is not JSON/],
  ])("%s like a failed run", async (_what, name, payload, error) => {
    const { logger, logged } = recorder();
    const strict = defineTask("strict", {
      queue: QUEUE,
      // A rule that JSON Schema cannot say, so that the put is not refused.
      payload: z.object({}).refine(() => false, { path: ["to"] }),
      handler: () => {},
    });
    const big = defineTask("big", { queue: QUEUE, payload: nothing, handler: () => 1n as never });
    await bench.work([type(() => null), strict, big], { logger });
    await bench.run("t", name, { payload });
    expect(await logged({ level: "error", message: "run failed" })).toMatchObject({
      task: "system/t",
      attempt: 1,
      error: expect.stringMatching(error),
    });
  });

  it("a run that exceeds its time limit", async () => {
    const { logger, logged } = recorder();
    const clock = new HandClock();
    const begun = gate();
    const slow = typed(({ signal }) => {
      begun.resolve();
      return aborted(signal);
    });
    await bench.work([slow], { logger }, { clock });
    await bench.run("t", "type", { timeLimit: "1s" });
    await begun.promise;
    clock.advance(1_000);
    expect(await logged({ level: "error", message: "run failed" })).toMatchObject({ outcome: "timed-out" });
  });

  it("a handler that still runs after its grace, also if its job was lost", async () => {
    const { logger, logged } = recorder();
    const clock = new HandClock();
    const [begun, finish] = [gate<AbortSignal>(), gate()];
    const hangs = typed(({ signal }) => {
      begun.resolve(signal);
      return finish.promise;
    });
    const lock = { lockDuration: 1_000, stalledInterval: 60_000 };
    await bench.work([hangs], { logger, ...lock }, { clock });
    const run = await bench.run("t", "type");
    const signal = await begun.promise;
    const lost = new Promise((resolve) => signal.addEventListener("abort", resolve));
    await bench.admin.del(`${bench.jobKey(run)}:lock`);
    await lost;
    clock.advance(10_000);
    const about = { queue: QUEUE, task: "system/t", run, attempt: 1 };
    const line = await logged({ level: "error", message: "handler ignores its signal" });
    expect(line).toMatchObject({
      ...about,
      error: expect.stringContaining("did not stop within 10s"),
    });
    finish.resolve();
  });

  it("a run whose workers died too often", async () => {
    const { logger, logged } = recorder();
    const run = await bench.run("t", "type", { crash: { attempts: 1 } });
    const dead = attempt({ worker: "dead" });
    await storeOf(bench.client).runs.start({ queue: QUEUE, owner: "system", id: "t" }, run, dead);
    await bench.work([type(() => null)], { logger });
    expect(await logged({ level: "error", message: "run crashed" })).toMatchObject({
      queue: QUEUE,
      task: "system/t",
      run,
      error: expect.any(String),
    });
  });

  it("a run that comes too soon after the one before", async () => {
    const { logger, logged } = recorder();
    await bench.work([type(() => null)], { logger });
    const first = await bench.run("t", "type", { schedule: { every: "100ms" }, minGap: "1h" });
    await logged({ level: "debug", message: "run ended", run: first });
    const run = await bench.due("t");
    expect(await logged({ level: "info", message: "run dropped" })).toMatchObject({ task: "system/t", run });
  });

  it("an item that failed, and its run", async () => {
    const { logger, logged } = recorder();
    const many = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: () => ["good", "bad"],
      process: async (item) => {
        if (item === "bad") throw new Error("boom");
      },
    });
    await bench.work([many], { logger });
    const run = await bench.run("t", "many");
    const about = { queue: QUEUE, task: "system/t", run };
    expect(await logged({ level: "warn", message: "item failed" })).toMatchObject({
      ...about,
      item: 1,
      attempt: 1,
      error: expect.stringContaining("boom"),
    });
    expect(await logged({ level: "error", message: "run failed" })).toMatchObject(about);
  });

  it("a job that somebody else added", async () => {
    const { logger, logged } = recorder();
    await bench.work([type(() => null)], { logger });
    const job = await bench.queue().add("type", { payload: {} });
    expect(await logged({ level: "error", message: "job refused" })).toMatchObject({
      queue: QUEUE,
      job: job.id,
      error: "This job was not added by Carillon: it has no occurrence.",
    });
  });

  it("as JSON lines on stdout if it has no logger", async () => {
    const life = lives.start("loud");
    await life.says({ msg: "worker is running" });
    const run = await bench.run("t", "fails");
    expect(await life.says({ msg: "run failed" })).toMatchObject({
      level: 50,
      name: "carillon",
      queue: QUEUE,
      task: "system/t",
      run,
      attempt: 1,
      outcome: "failed",
      error: expect.stringContaining("boom"),
    });
  });
});

describe("a start", () => {
  const make = (options: Partial<WorkerOptions>) => {
    const recorded = recorder();
    const { namespace } = bench;
    const types = [type(() => null)];
    const worker = new Worker({ namespace, types, logger: recorded.logger, ...options });
    return { worker, ...recorded };
  };

  it("waits for a Redis that is not there, and says why", async () => {
    const port = await freePort();
    const { worker, lines, logged } = make({ connection: `redis://127.0.0.1:${port}` });
    let started = false;
    const start = worker.start().then(() => {
      started = true;
    });
    await logged({ level: "error", message: "waiting for Redis", code: "REDIS_UNAVAILABLE" });
    expect(started).toBe(false);
    const server = await startRedis({ port });
    await start;
    expect(lines.at(-1)).toEqual({
      level: "info",
      message: "worker is running",
      namespace: bench.namespace,
      queues: [QUEUE],
    });
    await worker.stop();
    await server.stop();
  });

  it("logs at once that Redis refuses the password, and continues once it accepts it", async () => {
    const server = await startRedis({ password: "s3cret" });
    const { worker, lines, logged } = make({ connection: server.url.replace("s3cret", "hunter2") });
    const start = worker.start();
    const error = expect.stringContaining("WRONGPASS");
    await logged({ level: "error", code: "REDIS_AUTH" });
    // Reported at the first refusal, not when the wait for the connection ends.
    expect(lines[0]).toMatchObject({ message: "Redis cannot be reached", code: "REDIS_AUTH", error });
    const admin = new Redis(server.url);
    await admin.config("SET", "requirepass", "hunter2");
    await start;
    expect(JSON.stringify(lines)).not.toContain("hunter2");
    await worker.stop();
    admin.disconnect();
    await server.stop();
  });

  it("is ended by a stop, also with the caller's store, which stays open", async () => {
    const port = await freePort();
    const store = new Store({ connection: `redis://127.0.0.1:${port}`, namespace: bench.namespace });
    for (const options of [{ connection: `redis://127.0.0.1:${port}` }, { store }]) {
      const { worker, lines } = make(options);
      const start = worker.start();
      await worker.stop();
      await start;
      expect(lines.map(({ message }) => message)).not.toContain("worker is running");
    }
    const server = await startRedis({ port });
    expect(await store.serverTime()).toBeGreaterThan(0);
    await store.close();
    await server.stop();
  });
});
