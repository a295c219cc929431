import { defineTask } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

const START = Date.parse("2026-01-01T00:00:00Z");
const ms = (...offsets: number[]) => offsets.map((offset) => START + offset);

describe("T5 timeline: a drifting task fails until it is paused, linear and exponential backoff", () => {
  it.each([
    { backoff: "linear", starts: [0, 100, 300, 600, 1000] },
    // 100 + 200 + 400; the next wait, 800, is capped at 5 intervals.
    { backoff: "exponential", starts: [0, 100, 300, 700, 1200] },
  ] as const)("$backoff: starts at $starts", async ({ backoff, starts }) => {
    const failing = defineTask("failing", {
      queue: "bells",
      payload: anything,
      handler: () => Promise.reject(new Error("no")),
    });
    kit = await stand.kit({ types: [failing], start: START - 1_000 });
    await kit.client.put(failing, {
      id: "t",
      schedule: { every: "100ms", anchor: "finish", start: new Date(START).toISOString() },
      rerun: { delay: "100ms", backoff, jitter: 0 },
      pauseAfterFailures: 5,
      payload: {},
    });
    await kit.advanceTo(START + 60_000);
    await kit
      .expect("t")
      .ranAt(ms(...starts))
      .finishedAt(ms(...starts))
      .outcomes(starts.map(() => "failed" as const))
      .state("paused")
      .nextAt(undefined);
    expect(await kit.client.runs.stats("t")).toMatchObject({
      attempts: 5,
      failures: 5,
      consecutiveFailures: 5,
    });
    // The first run is the schedule's occurrence, the others retry it.
    const { runs } = await kit.history("t");
    expect(runs.map(({ trigger }) => trigger)).toEqual(["schedule", "retry", "retry", "retry", "retry"]);
    expect(new Set(runs.map(({ key }) => key)).size).toBe(1);
  });
});
