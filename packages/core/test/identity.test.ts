import { compileSchedule, type Schedule, seedOf } from "@carillon/core";
import { occurrenceKey, ScheduleCache } from "@carillon/core/internal";
import { describe, expect, it } from "vitest";

describe("the identity of an occurrence", () => {
  it("has a key of queue, owner, task and nominal time", () => {
    expect(occurrenceKey({ queue: "q", owner: "o", id: "t" }, 1_767_225_600_000)).toBe("q/o/t@1767225600000");
  });
});

describe("the schedule cache", () => {
  it("compiles each text once, and evicts the least recently used", () => {
    const cache = new ScheduleCache(2);
    const first = cache.compiled({ every: "1s" }, "a");
    const second = cache.compiled({ every: "2s" }, "a");
    expect(cache.compiled({ every: "1s" }, "b")).toBe(first);
    cache.compiled({ every: "3s" }, "a");
    expect(cache.compiled({ every: "1s" }, "a")).toBe(first);
    expect(cache.compiled({ every: "2s" }, "a")).not.toBe(second);
  });

  it.each<[string, Schedule]>([
    ["of its own", { cron: "H H * * *" }],
    ["of a member", { any: [{ cron: "0 0 1 1 *" }, { cron: "H H * * *" }] }],
    ["of an exclusion", { every: "1m", except: [{ cron: "H/2 * * * *" }] }],
  ])("shares no schedule that depends on the task by H: %s", (_what, schedule) => {
    const cache = new ScheduleCache();
    const first = new Set<number | undefined>();
    for (const seed of ["a", "b", "c", "d", "a", "b"]) {
      const next = cache.get({ schedule, owner: "system", id: seed }).next(0);
      expect(next).toBe(compileSchedule(schedule, seed).next(0));
      first.add(next);
    }
    expect(first.size).toBeGreaterThan(1);
  });

  it("gives the same answers as the schedule itself", () => {
    const schedule = { cron: "*/5 * * * *", timezone: "Europe/Berlin" };
    const now = Date.parse("2026-03-01T12:02:00Z");
    const cached = new ScheduleCache().get({ schedule, owner: "system", id: "a" });
    const own = compileSchedule(schedule, "a");
    expect([cached.next(now), cached.latest(now)]).toEqual([own.next(now), own.latest(now)]);
    expect(cached.next(now)).toBe(Date.parse("2026-03-01T12:05:00Z"));
  });
});

describe("the local name of a task", () => {
  it("is owner and id; for owner system the id alone", () => {
    expect(seedOf({ owner: "acme", id: "digest" })).toBe("acme/digest");
    expect(seedOf({ owner: "system", id: "digest" })).toBe("digest");
    expect(seedOf({ id: "digest" })).toBe("digest");
  });

  const OWNERS = 5_000;
  const BUCKETS = 48;
  const MIDNIGHT = Date.parse("2026-01-01T00:00:00Z");
  const cache = new ScheduleCache();

  it.each<[string, Schedule, number]>([
    ["jitter", { cron: "0 9 * * *", jitter: "5m" }, 300_000],
    ["jitter in percent", { every: "1h", jitter: "100%" }, 3_600_000],
    ["H", { cron: "H H * * *" }, 86_400_000],
  ])("%s: 5,000 owners of one id are spread evenly", (_what, schedule, width) => {
    const times = Array.from({ length: OWNERS }, (_, i) => {
      const task = cache.get({ schedule, owner: `tenant-${i}`, id: "digest" });
      const { nominal, due } = task.slotAfter(MIDNIGHT - 1)!;
      return schedule.jitter === undefined ? due - MIDNIGHT : due - nominal;
    });
    const counts = new Array<number>(BUCKETS).fill(0);
    for (const time of times) counts[Math.floor((time / width) * BUCKETS)]!++;
    const even = OWNERS / BUCKETS;
    const chiSquare = counts.reduce((sum, count) => sum + (count - even) ** 2 / even, 0);
    // 47 degrees of freedom: 82.7 is exceeded by chance once in a thousand times. The hash is fixed, so this is not chance.
    expect(chiSquare).toBeLessThan(82.7);
    expect(Math.max(...counts)).toBeLessThan(2 * even);
  });
});
