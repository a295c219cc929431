import type { Sabotage } from "@carillon/store";
import { describe, expect, it } from "vitest";
import fc from "../../../../test/fast-check.js";
import { sharedRedis } from "../../../../test/helpers.js";
import { type Operation, operation, perform } from "./operations.js";
import { World } from "./world.js";

/** Number of histories: few in a usual run, many at night. */
const RUNS = Number(process.env.CARILLON_MODEL_RUNS ?? 40);
const SEED =
  process.env.CARILLON_MODEL_SEED === undefined ? {} : { seed: Number(process.env.CARILLON_MODEL_SEED) };

/**
 * A failed job is retried from outside between a node's read and its commit: the case that the overlap guard exists
 * for.
 */
const REVIVED: Operation[] = [
  { op: "put", id: "a", task: { schedule: { every: "10s" } } },
  { op: "advance", ms: 10_000 },
  { op: "tick", node: 0 },
  { op: "start", plain: false },
  { op: "finish", which: 0, outcome: "failed" },
  { op: "advance", ms: 10_000 },
  { op: "retry-between" },
];

/** A trigger replaces the last occurrence of `maxRuns`: the times that passed since then are owed. */
const REOPENED: Operation[] = [
  {
    op: "put",
    id: "b",
    task: { schedule: { every: "10s", maxRuns: 4 }, overlap: "queue-all", catchUp: "all" },
  },
  { op: "advance", ms: 600_000 },
  ...Array.from({ length: 5 }, (): Operation => ({ op: "tick", node: 0 })),
  { op: "trigger", id: "b", overlap: "cancel-running" },
  { op: "advance", ms: 61_000 },
  { op: "start", plain: false },
  { op: "tick", node: 0 },
];

/** A run that holds a place ends while its owner has no limit. */
const UNLIMITED: Operation[] = [
  { op: "put", id: "a", task: { schedule: { every: "10s" } } },
  { op: "limit", owner: "system", runs: 1 },
  { op: "trigger", id: "a", overlap: undefined },
  { op: "limit", owner: "system", runs: undefined },
  { op: "start", plain: false },
  { op: "finish", which: 0, outcome: "succeeded" },
];

/** A task is deleted while it waits for a free place. */
const DELETED: Operation[] = [
  { op: "put", id: "a", task: { schedule: { every: "10s" } } },
  { op: "put", id: "b", task: { schedule: { every: "10s" } } },
  { op: "limit", owner: "system", runs: 1 },
  { op: "advance", ms: 10_000 },
  { op: "tick", node: 0 },
  { op: "delete", id: "a" },
  { op: "delete", id: "b" },
];

describe("random histories", () => {
  const redis = sharedRedis();

  async function history(
    operations: readonly Operation[],
    sabotage: readonly (Sabotage | "mutex")[],
  ): Promise<void> {
    const world = await World.open(redis.url, sabotage);
    try {
      for (const one of operations) {
        await perform(world, one);
        await world.check(one.op);
      }
      await world.settleDown();
      await world.check();
    } finally {
      await world.close();
    }
  }

  const property = (sabotage: readonly (Sabotage | "mutex")[]) =>
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 30, size: "max" }), (operations) =>
      history(operations, sabotage),
    );

  it(`keep the promises (${RUNS} histories)`, { timeout: 30 * 60_000 }, async () => {
    await fc.assert(property([]), { numRuns: RUNS, ...SEED, examples: [[REOPENED], [UNLIMITED], [DELETED]] });
  });

  /** Positive controls: without one part of the protocol, the same histories break a promise. */
  it.each<[string, (Sabotage | "mutex")[], RegExp]>([
    ["the fence", ["mutex", "fence"], /enqueued twice|went back|counted|skipped|beside/],
    ["the overlap guard", ["mutex", "overlap-guard"], /beside|skipped/],
    ["the check of limits", ["limit"], /over its limit/],
    ["the leaving of places", ["places"], /holds a place|comes to rest/],
    ["the wake of what waits", ["wake"], /did not wake|comes to rest/],
  ])("finds a broken promise without %s", { timeout: 120_000 }, async (_part, sabotage, broken) => {
    const examples: [Operation[]][] = [[REVIVED], [UNLIMITED]];
    const options = { numRuns: 500, endOnFailure: true, seed: 7, examples };
    const details = await fc.check(property(sabotage), options);
    expect(details.failed).toBe(true);
    expect(String(details.errorInstance)).toMatch(broken);
  });
});
