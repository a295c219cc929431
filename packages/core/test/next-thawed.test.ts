import { compileSchedule, type Freeze, type Schedule } from "@carillon/core";
import { type DueTask, decide, frozenAt, nextThawed, TaskSchedule } from "@carillon/core/internal";
import { describe, expect, it } from "vitest";

const MINUTE = 60_000;
const m = (minutes: number) => minutes * MINUTE;

function taskOf(schedule: Schedule, freezes: readonly Freeze[], from: number): DueTask {
  const compiled = compileSchedule(schedule, "t", {});
  const timetable = new TaskSchedule({ owner: "system", id: "t", schedule }, compiled);
  return {
    slot: timetable.slotAfter(from),
    schedule: timetable,
    once: "at" in schedule,
    freezes,
    ...{ fired: 0, pending: [], policies: {}, overlap: "allow", catchUp: "one", running: false },
    keyOf: String,
  };
}

const freeze = (id: number, more: Partial<Freeze>): Freeze => ({
  id: `f${id}`,
  from: 0,
  created: 0,
  ...more,
});

/** The same by `decide`, one time after the other. */
function decided(task: DueTask, now: number, until: number): number | undefined {
  let { slot, pending } = task;
  for (let at = Math.max(now, slot?.due ?? now); at <= until; ) {
    const { enqueue, next, pending: waits, frozen } = decide({ ...task, slot, pending }, at);
    if (enqueue) return Math.max(at, slot?.due ?? at);
    pending = waits;
    if (next !== "kept") slot = next && "nominal" in next ? next : undefined;
    const end = frozenAt(task.freezes ?? [], at)?.until;
    const isKept = next === "kept";
    const held = frozen && (isKept || pending.length > 0) ? end : undefined;
    const times = [held, frozen && isKept ? undefined : slot?.due].filter((time) => time !== undefined);
    if (times.length === 0) return undefined;
    at = Math.min(...times);
  }
  return undefined;
}

describe("the next time that no freeze covers", () => {
  it.each<[what: string, schedule: Schedule]>([
    ["an interval", { every: "7m" }],
    ["an interval with jitter", { every: "7m", jitter: "3m" }],
    ["cron", { cron: "*/10 * * * *", timezone: "UTC" }],
    ["a delay after the end", { every: "7m", anchor: "finish" }],
    ["a single time", { at: new Date(m(120)).toISOString() }],
  ])("of %s is the one that decisions come to, whatever the freezes", (_, schedule) => {
    let seed = 7;
    const dice = (most: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % most;
    };
    let moved = 0;
    for (let n = 0; n < 200; n++) {
      const now = m(60 + dice(60));
      const freezes = Array.from({ length: 1 + dice(3) }, (_, id) => {
        const from = m(dice(200));
        const window = { schedule: { cron: "0 * * * *", timezone: "UTC" }, length: m(1 + dice(50)), from: 0 };
        return freeze(id, dice(4) === 0 ? window : { from, until: from + m(1 + dice(200)) });
      });
      const task = taskOf(schedule, freezes, now);
      const next = nextThawed(task, [], now);
      expect([n, next]).toEqual([n, decided(task, now, m(2_000))]);
      if (next !== task.slot?.due) moved += 1;
    }
    expect(moved).toBeGreaterThan(20);
  });

  it("is none in a freeze without an end; what waits for a time goes at the end of one that has", () => {
    const schedule: Schedule = { every: "7m" };
    expect(nextThawed(taskOf(schedule, [freeze(1, {})], m(1)), [], m(1))).toBeUndefined();
    const task = taskOf(schedule, [freeze(1, { until: m(30) })], m(1));
    expect(nextThawed(task, [m(5)], m(1))).toBe(m(30));
    expect(nextThawed({ ...task, freezes: [] }, [m(5)], m(1))).toBe(m(5));
  });

  it("skips a hundred thousand times without deciding each", () => {
    const task = taskOf({ every: "1s" }, [freeze(1, { until: m(100_000) })], 0);
    const before = performance.now();
    expect(nextThawed(task, [], 0)).toBe(m(100_000));
    expect(performance.now() - before).toBeLessThan(1_000);
  });
});
