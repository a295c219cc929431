import { defineTask } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

const FIVE_MINUTES = 300_000;

describe("T7 timeline: a crash, five minutes of waiting, then a success that ends the streak", () => {
  it("the second attempt starts no earlier, the wait is stored, and the crash stays counted", async () => {
    const starts: number[] = [];
    const work = defineTask("work", {
      queue: "bells",
      payload: anything,
      handler: async () => {
        starts.push(Date.now());
        await kit.sleep("30s");
      },
    });
    kit = await stand.kit({ types: [work] });
    await kit.client.put(work, { id: "t", schedule: { at: "2026-01-01T00:01:00Z" }, payload: {} });
    let crashed = 0;
    kit.at("01:10", async () => {
      await kit.worker.crash();
      crashed = kit.now;
      await kit.worker.start();
    });

    await kit.advanceTo("04:00");
    const [waiting] = await kit.client.runs.list("t");
    expect(waiting).toMatchObject({ state: "queued", attempts: 1, crashes: 1 });
    expect(waiting?.notBefore).toBeGreaterThanOrEqual(crashed + FIVE_MINUTES);
    expect(await kit.client.runs.stats("t")).toMatchObject({
      attempts: 1,
      crashes: 1,
      consecutiveCrashes: 1,
    });

    await kit.advanceTo("30:00");
    expect(starts).toHaveLength(2);
    expect(starts[1]).toBe(waiting?.notBefore);
    await kit.expect("t").fired(1).outcomes(["succeeded"]);
    expect(await kit.client.runs.stats("t")).toMatchObject({
      attempts: 2,
      crashes: 1,
      consecutiveCrashes: 0,
      consecutiveFailures: 0,
      runs: 1,
      successes: 1,
    });
  });
});
