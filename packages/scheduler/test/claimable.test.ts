import { type Decided, Scheduler } from "@carillon/scheduler";
import { beforeEach, expect, it } from "vitest";
import { SILENT, sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";

const redis = sharedRedis();
const bench = Bench.use(() => redis.url);
let node: Scheduler;
beforeEach(async () => {
  node = new Scheduler({ store: bench.store, logger: SILENT });
});

/**
 * Enqueues that a node reports at this second, each with its due time, the time from which it could be claimed, and the
 * time of its claim.
 */
async function enqueuedAt(second: number): Promise<(number | undefined)[][]> {
  await bench.clock.set(START + 1000 * second);
  const { decided } = await node.tick();
  const seconds = (time = Number.NaN) => (time - START) / 1000;
  return decided
    .filter(({ outcome }: Decided) => outcome === "enqueued")
    .map(({ due, claimable, at }) => [due, claimable, at].map(seconds));
}

async function overdue(second: number): Promise<number> {
  await bench.clock.set(START + 1000 * second);
  const due = await bench.store.claims.earliestDue(QUEUE);
  return due === undefined ? Number.NaN : second - (due - START) / 1000;
}

it("an occurrence that nothing blocks is claimable when it is due, even if nodes are late", async () => {
  await bench.put({ id: "t", overlap: "allow" });
  expect(await enqueuedAt(10)).toEqual([[10, 10, 10]]);
  expect(await overdue(19)).toBeLessThan(0);
  expect(await overdue(24)).toBe(4);
  expect(await enqueuedAt(24)).toEqual([[20, 20, 24]]);
});

it("an occurrence that waits for a run is not overdue, and is claimable when that run ends", async () => {
  await bench.put({ id: "t", overlap: "queue-all" });
  await enqueuedAt(10);
  expect([await enqueuedAt(20), await enqueuedAt(30)]).toEqual([[], []]);
  expect(await overdue(39)).toBeLessThan(0);
  await bench.workAll();
  await bench.reconcile();
  expect(await overdue(39.5)).toBe(0.5);
  expect(await enqueuedAt(39.5)).toEqual([[20, 39, 39.5]]);
  // The next occurrence waits for the end of this run.
  expect(await overdue(39.9)).toBeLessThan(0);
});

it("an occurrence owed during a pause is claimable when its task is resumed", async () => {
  await bench.put({ id: "t", overlap: "allow" });
  await bench.store.tasks.pause(bench.name("t"));
  await bench.clock.set(START + 15_000);
  await bench.store.tasks.resume(bench.name("t"), "catch-up");
  expect(await enqueuedAt(16)).toEqual([[10, 15, 16]]);
});

it("an occurrence of a backlog is claimable when it was due: an outage counts as lateness", async () => {
  await bench.put({ id: "t", overlap: "allow", catchUp: "all" });
  const all = [];
  for (let i = 0; i < 2; i++) all.push(...(await enqueuedAt(27)));
  expect(all).toEqual([
    [10, 10, 27],
    [20, 20, 27],
  ]);
});
