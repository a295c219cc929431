import { defineTask } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

const START = Date.parse("2026-01-01T00:00:00Z");
const ms = (...offsets: number[]) => offsets.map((offset) => START + offset);

describe("T6 timeline: a fixed task fails, each retry held to the next slot", () => {
  it("linear: starts at 0, 200, 600, 800, 1600, and is then paused", async () => {
    const failing = defineTask("failing", {
      queue: "bells",
      payload: anything,
      handler: () => Promise.reject(new Error("no")),
    });
    kit = await stand.kit({ types: [failing], start: START - 1 });
    await kit.client.put(failing, {
      id: "t",
      schedule: { every: "800ms", origin: new Date(START).toISOString() },
      rerun: { delay: "200ms", backoff: "linear", jitter: 0 },
      pauseAfterFailures: 5,
      payload: {},
    });
    await kit.advanceTo(START + 60_000);
    const starts = ms(0, 200, 600, 800, 1600);
    await kit
      .expect("t")
      .ranAt(starts)
      .firedAt(ms(0, 800, 1600))
      .outcomes(starts.map(() => "failed" as const))
      .state("paused")
      .nextAt(undefined);
    const { runs, skips } = await kit.history("t");
    expect(runs.map(({ trigger, nominal }) => [trigger, nominal - START])).toEqual([
      ["schedule", 0],
      ["retry", 0],
      ["retry", 0],
      ["schedule", 800],
      ["schedule", 1600],
    ]);
    // Two retries would not have come before the next slot: that of 0 at 1200, and that of 800 at 1600. Equal and
    // consecutive, they are one entry.
    expect(skips.map(({ reason, from, to, at }) => [reason, from - START, to - START, at - START])).toEqual([
      ["retry-superseded", 0, 800, 800],
    ]);
  });
});
