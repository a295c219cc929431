import { OVERLAP_POLICIES, type TaskInput } from "@carillon/core";
import fc from "../../../../test/fast-check.js";
import type { World } from "./world.js";

/** One operation as data, so that a failing history can be read and repeated. */
export type Operation =
  | { readonly op: "put"; readonly id: string; readonly task: Partial<TaskInput> }
  | { readonly op: "pause" | "delete" | "backfill" | "retry-items"; readonly id: string }
  | {
      readonly op: "resume";
      readonly id: string;
      readonly missed: "skip" | "catch-up";
      readonly mode: "live" | "shadow" | undefined;
    }
  | {
      readonly op: "trigger";
      readonly id: string;
      readonly overlap: (typeof OVERLAP_POLICIES)[number] | undefined;
    }
  | { readonly op: "limit"; readonly owner: string; readonly runs: number | undefined }
  | { readonly op: "tick"; readonly node: number }
  | { readonly op: "race"; readonly id: string }
  | { readonly op: "retry-between" }
  | { readonly op: "start"; readonly plain: boolean }
  | { readonly op: "finish"; readonly which: number; readonly outcome: "succeeded" | "failed" }
  | { readonly op: "crash"; readonly which: number }
  | { readonly op: "advance"; readonly ms: number };

const id = fc.constantFrom("a", "b", "c");
const schedule = fc.constantFrom<TaskInput["schedule"]>(
  { every: "10s" },
  { every: "30s" },
  { every: "10s", jitter: "50%" },
  { every: "10s", maxRuns: 4 },
  { every: "20s", anchor: "finish" },
  { cron: "* * * * *" },
);
const task = fc.record({
  schedule,
  overlap: fc.constantFrom(...OVERLAP_POLICIES),
  catchUp: fc.constantFrom("skip", "one", "all"),
  rerun: fc.constantFrom(undefined, { delay: "3s", jitter: 0 }, { delay: "15s", backoff: "linear" }),
  pauseAfterFailures: fc.constantFrom(undefined, 2),
  mode: fc.constantFrom(undefined, undefined, undefined, "shadow"),
}) as fc.Arbitrary<Partial<TaskInput>>;

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: fc.constant("put" as const), id, task }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constantFrom("pause" as const, "delete" as const, "backfill" as const, "retry-items" as const),
      id,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("resume" as const),
      id,
      missed: fc.constantFrom("skip" as const, "catch-up" as const),
      mode: fc.constantFrom(undefined, undefined, "live" as const, "shadow" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("trigger" as const),
      id,
      overlap: fc.constantFrom(undefined, ...OVERLAP_POLICIES),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("limit" as const),
      owner: fc.constantFrom("system", "*"),
      runs: fc.constantFrom(1, 1, 2, undefined),
    }),
  },
  { weight: 5, arbitrary: fc.record({ op: fc.constant("tick" as const), node: fc.nat({ max: 1 }) }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("race" as const), id }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("retry-between" as const) }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant("start" as const), plain: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant("finish" as const),
      which: fc.nat({ max: 3 }),
      outcome: fc.constantFrom("succeeded" as const, "failed" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("crash" as const), which: fc.nat({ max: 3 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant("advance" as const),
      ms: fc.constantFrom(1, 999, 5_000, 10_000, 25_000, 61_000, 600_000),
    }),
  },
);

export async function perform(world: World, one: Operation): Promise<void> {
  switch (one.op) {
    case "put":
      return world.put(one.id, one.task);
    case "pause":
      return world.pause(one.id);
    case "delete":
      return world.delete(one.id);
    case "backfill":
      return world.backfill(one.id);
    case "retry-items":
      return world.retryItems(one.id);
    case "resume":
      return world.resume(one.id, one.missed, one.mode);
    case "trigger":
      return world.trigger(one.id, one.overlap);
    case "limit":
      return world.limit(one.owner, one.runs);
    case "tick":
      return world.tick(one.node);
    case "race":
      await Promise.all([world.tickAll(), world.trigger(one.id, undefined)]);
      return;
    case "retry-between":
      return world.retryBetween();
    case "start":
      await world.start(one.plain);
      return;
    case "finish":
      await world.finish(one.which, one.outcome);
      return;
    case "crash":
      return world.crash(one.which);
    case "advance":
      return world.clock.advance(one.ms);
  }
}
