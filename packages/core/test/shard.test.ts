import { SHARDS, shardOf } from "@carillon/core/internal";
import { describe, expect, it } from "vitest";

describe("shards", () => {
  // Shards must never change: stored tasks are in the shard that this function returned when they were put. Nodes of
  // two versions would otherwise search one task in two places.
  it.each([
    ["system/t", 7],
    ["system/nightly", 6],
    ["acme/nightly", 5],
    ["a/b", 1],
    ["a.b/c", 6],
    [`system/${"x".repeat(128)}`, 1],
  ])("keep %s where it has always been", (name, shard) => {
    expect(shardOf(name)).toBe(shard);
  });

  it("are eight, as keys and scripts assume", () => {
    expect(SHARDS).toBe(8);
  });

  it.each([
    ["numbered ids", (i: number) => `system/t${i}`],
    ["owners with one task each", (i: number) => `tenant-${i}/report`],
    ["long ids that differ at the end", (i: number) => `system/${"very-long-".repeat(8)}${i}`],
  ])("spread %s evenly", (_what, name) => {
    const counts = new Array<number>(SHARDS).fill(0);
    for (let i = 0; i < 8_000; i++) {
      const shard = shardOf(name(i));
      counts[shard] = (counts[shard] as number) + 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(850);
    expect(Math.max(...counts)).toBeLessThan(1_150);
  });
});
