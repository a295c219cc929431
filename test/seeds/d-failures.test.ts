import { type Context, defineTask, type Json } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

const NO = () => Promise.reject(new Error("no"));

function task(handler: (context: Context) => unknown) {
  return defineTask("work", {
    queue: "bells",
    payload: anything,
    handler: async (_payload, context) => (await handler(context)) as Json,
  });
}

/** Milliseconds from each start to the next. */
async function gaps(id: string): Promise<number[]> {
  const { runs } = await kit.history(id);
  const starts = runs.flatMap(({ started }) => started ?? []).sort((a, b) => a - b);
  return starts.slice(1).map((time, i) => time - (starts[i] as number));
}

describe("D4 a failure is retried with backoff, capped, and never past the next slot of a fixed schedule", () => {
  it("waits double up to 5 intervals; jitter of an eighth comes on top of the cap", async () => {
    const type = task(NO);
    kit = await stand.kit({ types: [type] });
    const schedule = { every: "10s", anchor: "finish" } as const;
    await kit.client.put(type, { id: "t", schedule, backoff: { period: "10s" }, payload: {} });
    await kit.advance("1h");
    const waits = await gaps("t");
    const exact = waits.map((_, i) => Math.min(10_000 * 2 ** i, 50_000));
    const off = waits.map((wait, i) => wait / (exact[i] as number) - 1);
    expect(waits.length).toBeGreaterThan(60);
    expect(Math.max(...off)).toBeLessThanOrEqual(0.13);
    expect(Math.min(...off)).toBeGreaterThanOrEqual(-0.13);
    // Spread over the whole of it, on both sides.
    expect(Math.max(...off)).toBeGreaterThan(0.1);
    expect(Math.min(...off)).toBeLessThan(-0.1);
    expect(new Set(waits).size).toBeGreaterThan(50);
  });

  it.each([
    { backoff: "linear", waits: [10, 20, 30, 40, 50, 50, 50] },
    { backoff: "exponential", waits: [10, 20, 40, 50, 50, 50, 50] },
    { backoff: "fixed", waits: [10, 10, 10, 10, 10, 10, 10] },
  ] as const)("$backoff without jitter: $waits seconds", async ({ backoff, waits }) => {
    const type = task(NO);
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "10s", anchor: "finish" },
      backoff: { period: "10s", backoff, jitter: 0 },
      pauseAfterFailures: 8,
      payload: {},
    });
    await kit.advance("1h");
    expect(await gaps("t")).toEqual(waits.map((seconds) => seconds * 1_000));
  });

  it("of a fixed schedule, a retry that would pass the next slot gives way to it", async () => {
    const type = task(() => kit.sleep("2s").then(NO));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { cron: "* * * * *" },
      backoff: { period: "20s" },
      payload: {},
    });
    await kit.advance("30m");
    const { runs } = await kit.history("t");
    const [slots, retries] = [
      runs.filter(({ trigger }) => trigger === "schedule"),
      runs.filter(({ trigger }) => trigger === "retry"),
    ];
    // Each slot is kept, to the moment.
    expect(slots).toHaveLength(30);
    for (const { started, nominal } of slots) expect(started).toBe(nominal);
    expect(retries.length).toBeGreaterThan(0);
    for (const { nominal, started } of retries) expect(started).toBeLessThan(nominal + 60_000);
    await kit.expect("t").skipped("overlap", 0);
  });

  it("a success ends the streak: the next failure waits the first wait again", async () => {
    let n = 0;
    const type = task(() => {
      n += 1;
      return n === 3 || n > 5 ? undefined : NO();
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1h", anchor: "finish" },
      backoff: { period: "10s", jitter: 0 },
      payload: {},
    });
    await kit.advance("3h");
    expect(await gaps("t")).toEqual([10_000, 20_000, 3_600_000, 10_000, 20_000]);
    await kit.expect("t").outcomes(["failed", "failed", "succeeded", "failed", "failed", "succeeded"]);
  });
});

describe("D8 a task is paused after n failures in a row, and starts from zero when resumed", () => {
  it("paused after n, timeouts among them, with a note; resumed it has n again", async () => {
    let n = 0;
    const type = task(({ signal }) => {
      n += 1;
      if (n === 2) return undefined;
      return n % 2 === 0 ? kit.sleep("1h", { signal }) : NO();
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1m" },
      timeLimit: "10s",
      pauseAfterFailures: 3,
      payload: {},
    });
    await kit.advance("1h");
    // One that went well is in between: the first failure does not count.
    await kit
      .expect("t")
      .outcomes(["failed", "succeeded", "failed", "timed-out", "failed"])
      .state("paused")
      .nextAt(undefined);
    expect((await kit.client.get("t")).paused).toMatchObject({ note: expect.stringContaining("3 failures") });
    expect(await kit.client.stats("t")).toMatchObject({ consecutiveFailures: 3, failures: 4 });

    expect(await kit.client.resume("t")).toBe(true);
    expect(await kit.client.stats("t")).toMatchObject({ consecutiveFailures: 0, failures: 4 });
    await kit.expect("t").state("scheduled");
    await kit.advance("1h");
    await kit.expect("t").fired(8).state("paused");
    expect(await kit.client.stats("t")).toMatchObject({ consecutiveFailures: 3, failures: 7 });
  });

  it("a run that is over because its workers died is a failure too", async () => {
    const type = task(({ signal }) => kit.sleep("1h", { signal }));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "10m" },
      crash: { most: 1 },
      pauseAfterFailures: 1,
      payload: {},
    });
    kit.at("10:05", async () => {
      await kit.worker.crash();
      await kit.worker.start();
    });
    await kit.advanceTo("15:00");
    await kit.expect("t").outcomes(["crashed"]).state("paused");
  });
});

describe("D9 a run past its time limit is ended and counts as a failure, not a crash", () => {
  it("failures 1, crashes 0", async () => {
    const told: unknown[] = [];
    const type = task(async ({ signal }) => {
      signal.addEventListener("abort", () => told.push([kit.now, String(signal.reason)]));
      await kit.sleep("10m", { signal });
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, timeLimit: "30s", payload: {} });
    await kit.advanceTo("1:05:00");
    await kit.expect("t").ranAt(["1:00:00"]).finishedAt(["1:00:30"]).outcomes(["timed-out"]);
    expect(told).toEqual([[Date.parse("2026-01-01T01:00:30Z"), expect.stringContaining("30s")]]);
    expect(await kit.client.stats("t")).toMatchObject({
      ...{ failures: 1, crashes: 0, consecutiveFailures: 1, consecutiveCrashes: 0 },
      outcomes: { "timed-out": 1, crashed: 0 },
    });
  });

  it("a handler that does not listen is given up after its grace", async () => {
    const type = task(() => kit.sleep("10m"));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1h" },
      timeLimit: "30s",
      timeLimitGrace: "5s",
      payload: {},
    });
    await kit.advanceTo("1:30:00");
    await kit.expect("t").finishedAt(["1:00:35"]).outcomes(["timed-out"]);
    expect(await kit.client.stats("t")).toMatchObject({ failures: 1, crashes: 0 });
  });
});
