import { compileSchedule, occurrenceKey, runId, type Schedule, ScheduleCache } from "@carillon/core";
import { describe, expect, it } from "vitest";

describe("what identifies an occurrence", () => {
  it("its key names queue, owner, task and nominal time", () => {
    expect(occurrenceKey({ queue: "q", owner: "o", id: "t" }, 1_767_225_600_000)).toBe("q/o/t@1767225600000");
  });

  it.each(["wait", "active", "meta", "123", "0", "x".repeat(128)])(
    "the run id of task %s is safe as a job id",
    (task) => {
      const id = runId(task, 1_767_225_600_000, "tok1");
      // BullMQ: no colon, not only digits, not one of its key names.
      expect(id).not.toContain(":");
      expect(id).not.toMatch(/^\d+$/);
      expect(id).toBe(`${task}@${(1_767_225_600_000).toString(36)}.tok1`);
    },
  );
});

describe("the schedule cache", () => {
  it("compiles one text once, and forgets the one that was not used for the longest time", () => {
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
  ])("shares nothing where H makes it each task's own: %s", (_what, schedule) => {
    const cache = new ScheduleCache();
    const first = new Set<number | undefined>();
    for (const seed of ["a", "b", "c", "d", "a", "b"]) {
      const next = cache.get(schedule, seed).next(0);
      expect(next).toBe(compileSchedule(schedule, seed).next(0));
      first.add(next);
    }
    expect(first.size).toBeGreaterThan(1);
  });

  it("answers as the schedule itself", () => {
    const schedule = { cron: "*/5 * * * *", timezone: "Europe/Berlin" };
    const now = Date.parse("2026-03-01T12:02:00Z");
    const cached = new ScheduleCache().get(schedule, "a");
    const own = compileSchedule(schedule, "a");
    expect([cached.next(now), cached.latest(now)]).toEqual([own.next(now), own.latest(now)]);
    expect(cached.next(now)).toBe(Date.parse("2026-03-01T12:05:00Z"));
  });
});
