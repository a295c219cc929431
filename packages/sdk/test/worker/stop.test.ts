import { CarillonError, type Context, defineTask, StoppingError, Worker } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { eventually } from "@carillon/testing";
import { describe, expect, it, vi } from "vitest";
import { gate, SILENT } from "../../../../test/helpers.js";
import { aborted, Bench, HandClock, next, nothing, QUEUE, typed } from "./bench.js";

const bench = Bench.use("stop");
const noop = defineTask("noop", { queue: QUEUE, payload: nothing, handler: () => {} });

describe("a stop with a time limit", () => {
  it("aborts the signals after its time, and hands jobs back whose handlers throw then", async () => {
    const clock = new HandClock();
    const begun = gate<Context>();
    const seen: number[] = [];
    const type = typed((context) => {
      seen.push(context.attempt);
      context.log(`part ${seen.length}`);
      if (seen.length > 1) return "by the next";
      begun.resolve(context);
      return aborted(context.signal);
    });
    const worker = await bench.work([type], {}, { clock });
    const run = await bench.run("t", "type");
    const { signal } = await begun.promise;
    const end = next(worker, "settled");
    const stopped = worker.stop({ within: "20s" });
    clock.advance(19_999);
    expect(signal.aborted).toBe(false);
    clock.advance(1);
    expect(signal.reason).toBeInstanceOf(StoppingError);
    expect(await end).toMatchObject({ outcome: "retrying" });
    await stopped;
    expect(await bench.record(run)).toMatchObject({ state: "queued" });

    await bench.work([type]);
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ result: "by the next" }));
    expect(await bench.stats("t")).toMatchObject({ attempts: "1", crashes: "0", succeeded: "1" });
    expect(seen).toEqual([1, 1]);
    // One attempt, with all of its output.
    expect(await bench.output(run)).toEqual([{ attempt: 1, text: "log part 1\nlog part 2\n", cut: false }]);
  });

  it("logs each 10 s what it waits for, and names a run that ignores its signal", async () => {
    const clock = new HandClock();
    const [begun, finish] = [gate(), bench.gate()];
    const type = typed(async () => {
      begun.resolve();
      await finish.promise;
    });
    const lines: [level: string, message: string, runs: unknown][] = [];
    const line = (level: string) => (details: object, message: string) => {
      if (message.startsWith("the stop")) lines.push([level, message, (details as { runs?: unknown }).runs]);
    };
    const logger = { debug() {}, info: line("info"), warn: line("warn"), error() {} };
    const worker = await bench.work([type], { logger }, { clock });
    const run = await bench.run("t", "type");
    await begun.promise;
    const stopped = worker.stop({ within: "15s" });
    void worker.stop();
    for (let n = 0; n < 3; n++) clock.advance(10_000);
    const runs = [{ run, queue: QUEUE, task: "system/t" }];
    const ignores = ["warn", "the stop waits for runs that ignore their signal", runs];
    expect(lines).toEqual([["info", "the stop waits for running handlers", runs], ignores, ignores]);
    finish.resolve();
    await stopped;
    clock.advance(60_000);
    expect(lines).toHaveLength(3);
  });

  it("before the start takes no job and does not fail", async () => {
    const worker = new Worker({
      connection: bench.redis.url,
      namespace: bench.namespace,
      types: [noop],
      logger: SILENT,
    });
    await worker.stop();
    await worker.start();
    const run = await bench.run("t", "noop");
    await bench.work([noop]);
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
    expect(await bench.queue().getWorkersCount()).toBe(1);
    await worker.stop();
  });

  it("is final: a start after it is refused", async () => {
    const worker = await bench.work([noop]);
    await worker.stop();
    const message = expect.stringContaining("this worker was stopped");
    await expect(worker.start()).rejects.toMatchObject({ code: "CONFLICT", message });
  });

  it("before a recorded start hands the job back", async () => {
    const store = new Store({ connection: bench.redis.url, namespace: bench.namespace });
    const tried = gate();
    vi.spyOn(store.runs, "start").mockImplementation(async () => {
      tried.resolve();
      throw new CarillonError("REDIS_UNAVAILABLE", "the answer was lost.");
    });
    // A start that has conditions to check is not combined with the take.
    await bench.put("t", "noop", { schedule: { every: "100ms" }, minGap: "1ms" });
    const run = await bench.due("t");
    const worker = await bench.work([noop], { connection: undefined, store });
    await tried.promise;
    await worker.stop();
    await store.close();
    expect(await (await bench.queue().getJob(run))?.getState()).toBe("waiting");

    await bench.work([noop]);
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
  });

  it("keeps the result of a handler that returns", async () => {
    const begun = gate();
    const type = typed(async ({ signal }) => {
      begun.resolve();
      await aborted(signal).catch(() => {});
      return "saved what it had";
    });
    const worker = await bench.work([type]);
    const run = await bench.run("t", "type");
    await begun.promise;
    const patient = worker.stop();
    await worker.stop({ within: 0 });
    await patient;
    expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", result: "saved what it had" });
  });

  it.each([
    ["wait for", 50],
    ["come for", 0],
  ])("returns items to the queue that %s their turn", async (_what, pings) => {
    const begun = gate();
    const finish = gate();
    const done: number[] = [];
    const type = defineTask("many", {
      queue: QUEUE,
      payload: nothing,
      generate: () => [0, 1, 2, 3],
      process: async (n: number) => {
        begun.resolve();
        await finish.promise;
        done.push(n);
      },
      concurrency: 1,
    });
    const worker = await bench.work([type]);
    const run = await bench.run("t", "many");
    await begun.promise;
    await eventually(async () => expect(await bench.admin.llen(bench.jobKey("active"))).toBe(4));
    for (let n = 0; n < pings; n++) await bench.admin.ping();
    const stopped = worker.stop();
    await eventually(async () => expect(await bench.admin.llen(bench.jobKey("active"))).toBe(1));
    finish.resolve();
    await stopped;
    expect(done).toEqual([0]);
    await bench.work([type]);
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
    expect(done.sort()).toEqual([0, 1, 2, 3]);
  });

  it("refuses an invalid time", async () => {
    const worker = await bench.work([noop]);
    await expect(worker.stop({ within: -1 })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "within",
    });
  });
});
