import { defineTask, TimeLimitError } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { gate } from "../../../../test/helpers.js";
import { aborted, Bench, HandClock, next, nothing, QUEUE, telling } from "./bench.js";

const bench = Bench.use("limit");
const timed = { timeLimit: "30s", timeLimitGrace: "10s" };

describe("a time limit", () => {
  let clock: HandClock;
  beforeEach(() => {
    clock = new HandClock();
  });

  it("counts down, aborts the signal with its reason, and marks the run as terminating", async () => {
    const finish = gate();
    const { definition, begun } = telling("box", () => finish.promise);
    const worker = await bench.work([definition], {}, { clock });
    const run = await bench.run("t", "box", timed);
    const { signal, timeLeft } = await begun;
    expect(timeLeft()).toBe(30_000);
    clock.advance(29_999);
    expect([timeLeft(), signal.aborted]).toEqual([1, false]);
    expect(await bench.record(run)).toMatchObject({ state: "running" });
    clock.advance(1);
    expect(timeLeft()).toBe(0);
    expect(signal.reason).toBeInstanceOf(TimeLimitError);
    expect(String(signal.reason)).toBe("TimeLimitError: The time limit of 30s is over.");
    await eventually(async () => expect(await bench.record(run)).toMatchObject({ state: "terminating" }));

    const end = next(worker, "settled");
    finish.resolve();
    // The handler ended early enough: the next run continues.
    expect(await end).toMatchObject({ outcome: "partial" });
    expect(await bench.record(run)).toMatchObject({ state: "final", outcome: "partial" });
    expect(await bench.stats("t")).toMatchObject({ partial: "1", crashes: "0", consecutiveFailures: "0" });
    expect(clock.armed).toBe(0);
  });

  it("is absent if the task has none", async () => {
    const finish = gate();
    const { definition, begun } = telling("box", () => finish.promise);
    const worker = await bench.work([definition], {}, { clock });
    await bench.run("t", "box");
    const { timeLeft } = await begun;
    expect(timeLeft()).toBe(Number.POSITIVE_INFINITY);
    expect(clock.armed).toBe(0);
    const end = next(worker, "settled");
    finish.resolve();
    expect(await end).toMatchObject({ outcome: "succeeded" });
  });

  it("counts a handler that throws in its grace as timed out, not crashed", async () => {
    const { definition, begun } = telling("box", ({ signal }) => aborted(signal));
    const worker = await bench.work([definition], {}, { clock });
    const run = await bench.run("t", "box", timed);
    await begun;
    const end = next(worker, "settled");
    clock.advance(30_000);
    expect(await end).toMatchObject({ outcome: "timed-out", error: expect.stringContaining("30s is over") });
    expect(await bench.record(run)).toMatchObject({ state: "final", outcome: "timed-out" });
    expect(await bench.stats("t")).toMatchObject({
      "timed-out": "1",
      crashes: "0",
      consecutiveFailures: "1",
    });
    const jobs = bench.queue();
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
  });

  it("abandons a handler that continues after its grace, and ignores its result", async () => {
    const finish = gate();
    const after = gate<unknown>();
    const { definition, begun } = telling("box", async (context) => {
      await finish.promise;
      context.log("too late");
      await context.saveCheckpoint(1).catch(after.resolve);
      return { by: "the zombie" };
    });
    const worker = await bench.work([definition], { concurrency: 1 }, { clock });
    const retry = { attempts: 3, delay: "1ms" };
    const run = await bench.run("t", "box", { ...timed, retry });
    const { log } = await begun;
    log("in time");
    const end = next(worker, "settled");
    clock.advance(39_999);
    expect(await bench.record(run)).not.toMatchObject({ state: "final" });
    clock.advance(1);
    expect(await end).toMatchObject({
      outcome: "timed-out",
      error: expect.stringContaining("The handler did not stop within 10s."),
    });
    const jobs = bench.queue();
    // Not retried although attempts are left, because the handler still runs.
    await eventually(async () => expect(await (await jobs.getJob(run))?.isFailed()).toBe(true));
    finish.resolve();
    expect(await after.promise).toMatchObject({ code: "CONFLICT", message: "not saved: this run is over." });
    expect(await bench.record(run)).toMatchObject({ outcome: "timed-out", attempts: 1 });
    expect(await bench.record(run)).not.toHaveProperty("result");
    expect(await bench.output(run)).toMatchObject([{ attempt: 1, text: "log in time\n" }]);
  });

  it("leads to a retry like any failure, with the full limit for each attempt", async () => {
    const left: number[] = [];
    const begun: (() => void)[] = [];
    const definition = defineTask("box", {
      queue: QUEUE,
      payload: nothing,
      handler: ({ again = true }: { again?: boolean }, { attempt, signal, timeLeft }) => {
        left.push(timeLeft());
        begun.shift()?.();
        return again && attempt < 3 ? aborted(signal) : "done";
      },
    });
    const worker = await bench.work([definition], {}, { clock });
    const retry = { attempts: 3, delay: "1ms" };
    let start = gate();
    begun.push(start.resolve);
    const run = await bench.run("t", "box", { ...timed, retry });
    for (let attempt = 1; attempt < 3; attempt++) {
      await start.promise;
      start = gate();
      begun.push(start.resolve);
      const end = next(worker, "settled");
      clock.advance(30_000);
      expect(await end).toMatchObject({ outcome: "retrying" });
    }
    await eventually(async () =>
      expect(await bench.record(run)).toMatchObject({ outcome: "succeeded", attempts: 3, result: "done" }),
    );
    expect(left).toEqual([30_000, 30_000, 30_000]);
  });

  it("may be longer than a timer can wait", async () => {
    const finish = gate();
    const { definition, begun } = telling("box", () => finish.promise);
    const worker = await bench.work([definition]);
    const end = next(worker, "settled");
    await bench.run("t", "box", { timeLimit: "30d", schedule: { every: "365d" } });
    const { signal } = await begun;
    // Lets some milliseconds pass.
    for (let n = 0; n < 50; n++) await bench.admin.ping();
    expect(signal.aborted).toBe(false);
    finish.resolve();
    expect(await end).toMatchObject({ outcome: "succeeded" });
  });
});
