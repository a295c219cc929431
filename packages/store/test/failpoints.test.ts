import { parseTask } from "@carillon/core";
import { Store } from "@carillon/store";
import { withSeams } from "@carillon/store/internal";
import { expect, test, vi } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";

const redis = sharedRedis();

const task = (id: string) => parseTask({ id, type: "noop", queue: "bells", schedule: { every: "1m" } });

test("each script and each step of a mutex passes its points, in order", async () => {
  const points: string[] = [];
  const failpoint = (point: string) => void points.push(point);
  const store = new Store(withSeams({ connection: redis.url, namespace: "points" }, { failpoint }));
  await store.tasks.put("bells", [task("a")]);
  const lease = await store.lease("bells", "0", 1_000);
  await lease?.extend(1_000);
  await lease?.release();
  await store.freeLease("bells", "0");
  await store.close();
  expect(points.slice(-12)).toEqual([
    "before put",
    "after put",
    "before mark-queue",
    "after mark-queue",
    "before lock",
    "after lock",
    "before renew",
    "after renew",
    "before unlock",
    "after unlock",
    "before free",
    "after free",
  ]);
});

test("a throw after a script counts as a lost answer: it is sent again, and changes nothing twice", async () => {
  let losses = 0;
  const failpoint = (point: string) => {
    if (point !== "after put" || losses === 2) return;
    losses += 1;
    throw new Error("Connection is closed.");
  };
  const store = new Store(withSeams({ connection: redis.url, namespace: "lost" }, { failpoint }));
  await store.tasks.put("bells", [task("a")]);
  const stored = await store.tasks.get({ queue: "bells", owner: "system", id: "a" });
  await store.close();
  expect(losses).toBe(2);
  expect(stored?.definition.id).toBe("a");
});

test.each([
  ["ahead", 3_600_000],
  ["back", -3_600_000],
])("a lease lasts and is renewed as in Redis if the wall clock jumps %s", async (_way, error) => {
  const store = new Store({ connection: redis.url, namespace: "clocks" });
  await store.serverTime();
  const lease = await store.lease("bells", "0", 60_000);
  const now = Date.now.bind(Date);
  vi.spyOn(Date, "now").mockImplementation(() => now() + error);
  expect(lease?.remaining).toBeGreaterThan(0);
  expect(lease?.remaining).toBeLessThanOrEqual(60_000);
  expect(await lease?.extend(120_000)).toBe(true);
  expect(lease?.remaining).toBeGreaterThan(60_000);
  expect(lease?.remaining).toBeLessThanOrEqual(120_000);
  await store.freeLease("bells", "0");
  expect(await lease?.extend(120_000)).toBe(false);
  expect(lease?.remaining).toBe(0);
  vi.restoreAllMocks();
  await store.close();
});
