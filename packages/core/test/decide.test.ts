import {
  type CatchUpPolicy,
  compileSchedule,
  OVERLAP_POLICIES,
  type OverlapPolicy,
  type Schedule,
  type SkipReason,
} from "@carillon/core";
import {
  type Decision,
  type DueTask,
  decide,
  decideItems,
  decideStep,
  decideTrigger,
  firstNext,
  forbidden,
  nextStep,
  type Pending,
  replan,
  type Slot,
  TaskSchedule,
} from "@carillon/core/internal";
import { describe, expect, it } from "vitest";

const MINUTE = 60_000;

/** Every minute, until `end` if given. */
function minutely(end?: number): TaskSchedule {
  return taskSchedule({ every: "1m", ...(end === undefined ? {} : { end: new Date(end).toISOString() }) });
}
function taskSchedule(schedule: Schedule): TaskSchedule {
  return new TaskSchedule({ owner: "system", id: "t", schedule }, compileSchedule(schedule, "t"));
}
const m = (minutes: number) => minutes * MINUTE;
const at = (minutes: number) => ({ nominal: m(minutes), due: m(minutes) });
/** A due task: the times of its slot at the top level, everything else with defaults. */
function dueTask(
  given: Partial<DueTask> & { nominal: number; due: number; schedule: TaskSchedule },
): DueTask {
  const { nominal, due, ...rest } = given;
  return {
    slot: { nominal, due },
    fired: 0,
    pending: [],
    policies: {},
    overlap: "skip",
    catchUp: "one",
    running: false,
    keyOf: (time) => `k${time}`,
    ...rest,
  };
}
const pending: never[] = [];
/** The enqueued occurrence of a nominal time. */
const key = (minutes: number) => ({ key: `k${m(minutes)}` });

function nominalOf({ next }: Decision): number | undefined {
  return typeof next === "object" && "nominal" in next ? next.nominal : undefined;
}

describe("a decision", () => {
  type Case = [
    what: string,
    task: { catchUp: CatchUpPolicy; overlap: OverlapPolicy; running: boolean },
    now: number,
    decision: Decision,
  ];
  const free = { overlap: "skip", running: false } as const;
  const busy = { overlap: "skip", running: true } as const;
  const beside = { overlap: "allow", running: true } as const;
  const punctual = {
    enqueue: { ...key(10), ...at(10), trigger: "schedule" },
    skipped: [],
    cursor: m(10),
    next: at(11),
    pending,
  } as const;
  const overlapped = {
    skipped: [{ reason: "overlap", from: m(10), to: m(10) }],
    cursor: m(10),
    next: at(11),
    pending,
  } as const;

  // The due occurrence is minute 10.
  const table: Case[] = [
    ...(["skip", "one", "all"] as const).flatMap((catchUp): Case[] => [
      ["on time, nothing runs", { catchUp, ...free }, m(10), punctual],
      ["on time, allowed beside a run", { catchUp, ...beside }, m(10), punctual],
      ["on time, beside a run", { catchUp, ...busy }, m(10), overlapped],
      ["late, before the next", { catchUp, ...free }, m(11) - 1, punctual],
    ]),
    ...(["one", "all"] as const).map(
      (catchUp): Case => ["late, before the next, beside a run", { catchUp, ...busy }, m(11) - 1, overlapped],
    ),
    [
      "a backlog of two, walked",
      { catchUp: "all", ...free },
      m(11),
      {
        enqueue: { ...key(10), ...at(10), trigger: "catch-up" },
        skipped: [],
        cursor: m(10),
        next: at(11),
        pending,
      },
    ],
    ["a backlog, walked beside a run", { catchUp: "all", ...busy }, m(15), overlapped],
    [
      "a backlog, walked, allowed beside a run",
      { catchUp: "all", ...beside },
      m(15),
      {
        enqueue: { ...key(10), ...at(10), trigger: "catch-up" },
        skipped: [],
        cursor: m(10),
        next: at(11),
        pending,
      },
    ],
    [
      "a backlog of two, the latest of it",
      { catchUp: "one", ...free },
      m(11),
      {
        enqueue: { ...key(11), ...at(11), trigger: "catch-up", missed: { from: m(10), to: m(10) } },
        skipped: [{ reason: "missed", from: m(10), to: m(10) }],
        cursor: m(11),
        next: at(12),
        pending,
      },
    ],
    [
      "a backlog of a year, the latest of it",
      { catchUp: "one", ...free },
      m(525_600) + 5,
      {
        enqueue: {
          ...key(525_600),
          ...at(525_600),
          trigger: "catch-up",
          missed: { from: m(10), to: m(525_599) },
        },
        skipped: [{ reason: "missed", from: m(10), to: m(525_599) }],
        cursor: m(525_600),
        next: at(525_601),
        pending,
      },
    ],
    [
      "a backlog, the latest of it beside a run",
      { catchUp: "one", ...busy },
      m(13),
      {
        skipped: [
          { reason: "missed", from: m(10), to: m(12) },
          { reason: "overlap", from: m(13), to: m(13) },
        ],
        cursor: m(13),
        next: at(14),
        pending,
      },
    ],
    [
      "a backlog, none of it",
      { catchUp: "skip", ...free },
      m(13) + 7,
      { skipped: [{ reason: "missed", from: m(10), to: m(13) }], cursor: m(13), next: at(14), pending },
    ],
  ];
  it.each(table)("%s: %j at %d", (_what, task, now, decision) => {
    expect(decide(dueTask({ ...at(10), schedule: minutely(), ...task }), now)).toEqual(decision);
  });

  describe("about the last time of a schedule", () => {
    const last = { ...at(10), schedule: minutely(m(10)), overlap: "skip", running: false } as const;
    it.each(["skip", "one", "all"] as const)(
      "catchUp %s: enqueues within the grace, and finishes",
      (catchUp) => {
        expect(decide(dueTask({ ...last, catchUp }), m(11))).toEqual({
          enqueue: { ...key(10), ...at(10), trigger: "schedule" },
          skipped: [],
          cursor: m(10),
          next: undefined,
          pending,
        });
      },
    );
    it.each(["one", "all"] as const)("catchUp %s: enqueues it however late", (catchUp) => {
      expect(decide(dueTask({ ...last, catchUp }), m(10_000)).enqueue?.nominal).toBe(m(10));
    });
    it("catchUp skip: misses it 1 ms after the grace", () => {
      expect(decide(dueTask({ ...last, catchUp: "skip" }), m(11) + 1)).toEqual({
        skipped: [{ reason: "missed", from: m(10), to: m(10) }],
        cursor: m(10),
        next: undefined,
        pending,
      });
    });
    it("catchUp skip: the grace can be set", () => {
      expect(decide(dueTask({ ...last, catchUp: "skip" }), m(10) + 5, 5).enqueue).toBeDefined();
      expect(decide(dueTask({ ...last, catchUp: "skip" }), m(10) + 6, 5).enqueue).toBeUndefined();
    });
    it("skips it while a run is open, and finishes the task", () => {
      expect(decide(dueTask({ ...last, catchUp: "all", running: true }), m(10))).toEqual({
        skipped: [{ reason: "overlap", from: m(10), to: m(10) }],
        cursor: m(10),
        next: undefined,
        pending,
      });
    });
  });

  /** Under any policy and any lateness, each time between two cursors is decided exactly once. */
  it.each(["skip", "one", "all"] as const)("catchUp %s: decides every time exactly once", (catchUp) => {
    for (const running of [false, true]) {
      for (const step of [1, 59_999, 60_000, 60_001, 150_000, 600_000]) {
        const decided: number[] = [];
        let nominal: number | undefined = m(10);
        for (let now = m(10); now < m(100) && nominal !== undefined; now += step) {
          while (nominal !== undefined && nominal <= now) {
            const times = { nominal, due: nominal };
            const task = { ...times, schedule: minutely(), overlap: "skip", catchUp, running } as const;
            const decision: Decision = decide(dueTask(task), now);
            for (const { from, to } of decision.skipped)
              for (let t = from; t <= to; t += MINUTE) decided.push(t);
            if (decision.enqueue) decided.push(decision.enqueue.nominal);
            expect(decision.cursor).toBe(Math.max(...decided));
            nominal = nominalOf(decision);
          }
          if (step === 1 && now > m(12)) break;
        }
        expect(decided).toEqual(Array.from({ length: decided.length }, (_, i) => m(10 + i)));
        expect(decided.length).toBeGreaterThan(1);
      }
    }
  });

  it.each(["skip", "one", "all"] as const)(
    "catchUp %s: leaves out nothing of a backlog within a window",
    (catchUp) => {
      for (const window of ["1m", "3m", "1h"]) {
        const policies = { catchUpLimits: { window } };
        const decided = new Set<number>();
        let nominal: number | undefined = m(10);
        while (nominal !== undefined && nominal <= m(20)) {
          const task = { nominal, due: nominal, schedule: minutely(), catchUp, policies };
          const decision: Decision = decide(dueTask(task), m(20) + 1);
          for (const { from, to } of decision.skipped)
            for (let t = from; t <= to; t += MINUTE) decided.add(t);
          if (decision.enqueue) decided.add(decision.enqueue.nominal);
          nominal = nominalOf(decision);
        }
        expect([...decided].sort((a, b) => a - b)).toEqual(Array.from({ length: 11 }, (_, i) => m(10 + i)));
      }
    },
  );

  it.each([undefined, "30s"])("skips times older than the window, and enqueues one every %s", (every) => {
    const catchUpLimits = { window: "10m", ...(every === undefined ? {} : { every }) };
    const schedule = taskSchedule({ every: "10s" });
    const policies = { catchUpLimits };
    const task = { schedule, catchUp: "all", policies, ...at(0) } as const;
    let [slot, now, walked] = [at(0), m(60), 0];
    for (; now < m(120); now = Math.max(now, slot.due)) {
      const { enqueue, next }: Decision = decide(dueTask({ ...task, ...slot }), now);
      expect(now - (enqueue as Pending).nominal).toBeLessThanOrEqual(m(10));
      slot = next as Slot;
      walked += 1;
    }
    expect(walked).toBeGreaterThan(100);
  });

  it.each([undefined, "100%"])(
    "owes what was due within the window, to the millisecond: jitter %s",
    (jitter) => {
      const schedule = taskSchedule({ every: "1m", ...(jitter === undefined ? {} : { jitter }) });
      const task = { nominal: m(10), due: schedule.due(m(10)), schedule, catchUp: "all" } as const;
      const policies = { catchUpLimits: { window: "20s" } };
      const times = Array.from({ length: 40 }, (_, i) => m(10 + i));
      for (let now = m(20); now < m(40); now += 1_000) {
        const due = times.filter((time) => schedule.due(time) <= now);
        const owed = due.find((time) => schedule.due(time) >= now - 20_000);
        const { enqueue, cursor } = decide(dueTask({ ...task, policies }), now);
        expect([enqueue?.nominal, cursor]).toEqual([owed, owed ?? due.at(-1)]);
      }
    },
  );

  it.each<[CatchUpPolicy, late: number, first: number | undefined, trigger?: string]>([
    ["one", 5_000, 0, "schedule"],
    ["one", 5_001, 5_000, "catch-up"],
    ["all", 5_000, 0, "catch-up"],
    ["skip", 5_000, undefined],
  ])("takes times of “%s” that are %i ms late as they are, or as missed", (catchUp, late, first, trigger) => {
    const task = dueTask({
      nominal: 0,
      due: 0,
      catchUp,
      overlap: "allow",
      schedule: taskSchedule({ every: "1s" }),
    });
    const { enqueue, skipped } = decide(task, late);
    expect([enqueue?.nominal, enqueue?.trigger]).toEqual([first, trigger]);
    expect(skipped).toEqual(
      first === 0 ? [] : [{ reason: "missed", from: 0, to: first === undefined ? 5_000 : first - 1_000 }],
    );
  });

  it.each([
    ["late with all since then", 0, 60_000, 0],
    ["late for longer than the grace", 0, 60_001, 60_000],
    ["late with all only since then", 1, 60_000, 60_000],
  ])("takes times of “one” one by one if the node was %s", (_, behindSince, now, first) => {
    const task = dueTask({
      nominal: 0,
      due: 0,
      catchUp: "one",
      overlap: "allow",
      behindSince,
      schedule: taskSchedule({ every: "1s" }),
    });
    expect(decide(task, now, 60_000).enqueue?.nominal).toBe(first);
  });

  it("catches up with the times within the limits, even if only one is left", () => {
    const decided = (catchUp: CatchUpPolicy, catchUpLimits: object) =>
      decide(
        dueTask({ ...at(10), schedule: minutely(), catchUp, policies: { catchUpLimits } }),
        m(20) + 5_000,
      );
    const window = "30s";
    expect(decided("skip", { window })).toMatchObject({ cursor: m(20), next: at(21) });
    expect(decided("skip", { window }).enqueue).toBeUndefined();
    const missed = { from: m(10), to: m(19) };
    expect(decided("one", { window }).enqueue).toEqual({
      ...key(20),
      ...at(20),
      trigger: "catch-up",
      missed,
    });
    // The pace does not hold up the occurrence after the backlog.
    expect(decided("all", { max: 1, every: "1s" })).toMatchObject({
      enqueue: { ...at(20), trigger: "catch-up" },
      next: at(21),
    });
  });

  it("forbids only what the policy forbids", () => {
    expect(forbidden("skip", true)).toBe(true);
    expect(forbidden("skip", false)).toBe(false);
    expect(forbidden("allow", true)).toBe(false);
  });

  it("starts strictly after now and after what is decided", () => {
    expect(firstNext(minutely(), {}, m(10))).toEqual(at(11));
    expect(firstNext(minutely(), { cursor: m(5) }, m(10) - 1)).toEqual(at(10));
    expect(firstNext(minutely(), { cursor: m(20) }, m(10))).toEqual(at(21));
    expect(firstNext(minutely(m(10)), {}, m(10))).toBeUndefined();
  });

  describe("with jitter", () => {
    const schedule = taskSchedule({ every: "1m", jitter: "100%" });
    const task = { nominal: m(10), due: schedule.due(m(10)), fired: 0, schedule, overlap: "skip" } as const;
    it("returns nominal and due times", () => {
      expect(task.due).toBeGreaterThan(m(10));
      const { enqueue, next } = decide(dueTask({ ...task, catchUp: "one", running: false }), task.due);
      expect(enqueue).toEqual({ ...key(10), nominal: m(10), due: task.due, trigger: "schedule" });
      expect(next).toEqual({ nominal: m(11), due: schedule.due(m(11)) });
    });
    it("has no backlog before the next occurrence is due, even if its nominal time has passed", () => {
      const { enqueue } = decide(
        dueTask({ ...task, catchUp: "one", running: false }),
        schedule.due(m(11)) - 1,
      );
      expect(enqueue).toEqual({ ...key(10), nominal: m(10), due: task.due, trigger: "schedule" });
    });
    it("catches up with the latest time that is due, never with one that is not", () => {
      for (let now = schedule.due(m(11)); now < m(30); now += 7_001) {
        const { enqueue, next } = decide(dueTask({ ...task, catchUp: "one", running: false }), now);
        expect(enqueue?.trigger).toBe("catch-up");
        expect(enqueue?.due).toBeLessThanOrEqual(now);
        expect((next as { due: number }).due).toBeGreaterThan(now);
        const passed = decide(dueTask({ ...task, catchUp: "skip" }), now);
        expect(passed).toMatchObject({ cursor: enqueue?.nominal, next });
      }
    });
    it("counts the grace from the due time", () => {
      const late = taskSchedule({ every: "1h", jitter: "30m" });
      const nominal = [1, 2, 3, 4, 5]
        .map((hour) => m(hour * 60))
        .find((at) => late.due(at) - at > m(10)) as number;
      const one = { ...task, nominal, due: late.due(nominal), schedule: late, running: false } as const;
      expect(decide(dueTask({ ...one, catchUp: "skip" }), one.due + 60_000).enqueue).toBeDefined();
      expect(decide(dueTask({ ...one, catchUp: "skip" }), one.due + 60_001).enqueue).toBeUndefined();
    });
  });

  describe("with maxRuns", () => {
    const schedule = taskSchedule({ every: "1m", maxRuns: 3 });
    const task = { ...at(10), schedule, catchUp: "all", overlap: "skip", running: false } as const;
    it("finishes with the last one", () => {
      expect(decide(dueTask({ ...task, fired: 1 }), m(10)).next).toEqual(at(11));
      expect(decide(dueTask({ ...task, fired: 2 }), m(10))).toMatchObject({
        enqueue: at(10),
        next: undefined,
      });
    });
    it("does not count what is skipped", () => {
      expect(decide(dueTask({ ...task, fired: 2, running: true }), m(10)).next).toEqual(at(11));
    });
    it("enqueues nothing if a backfill or pending occurrences have used it up", () => {
      const over = { skipped: [], next: undefined };
      expect(decide(dueTask({ ...task, fired: 3 }), m(10))).toEqual({ ...over, pending });
      const waits: Pending = { ...key(9), ...at(9), trigger: "schedule" };
      const full = dueTask({ ...task, fired: 2, running: true, overlap: "queue-all", pending: [waits] });
      expect(decide(full, m(10))).toEqual({ ...over, pending: [waits] });
    });
    it("has no first time if it is used up", () => {
      expect(firstNext(schedule, { fired: 3 }, m(10))).toBeUndefined();
      expect(replan(schedule, { fired: 3, nominal: m(9) }, m(10)).slot).toBeUndefined();
    });
  });

  describe("with a fixed delay after finish", () => {
    const schedule = taskSchedule({ every: "2m", anchor: "finish", end: new Date(m(60)).toISOString() });
    const task = { ...at(10), fired: 0, schedule, catchUp: "one", overlap: "skip", running: false } as const;
    it("waits for the end of the run, even if it is late", () => {
      for (const now of [m(10), m(50)]) {
        expect(decide(dueTask(task), now)).toEqual({
          enqueue: { ...key(10), ...at(10), trigger: "schedule" },
          skipped: [],
          cursor: m(10),
          next: { afterFinish: m(2) },
          pending,
        });
      }
    });
    it("tries again one delay later while another run is open", () => {
      expect(decide(dueTask({ ...task, running: true }), m(11)).next).toEqual(at(13));
      expect(decide(dueTask({ ...task, catchUp: "skip" }), m(12)).next).toEqual(at(14));
    });
    it("catchUp skip: enqueues within the grace", () => {
      expect(decide(dueTask({ ...task, catchUp: "skip" }), m(11)).enqueue).toMatchObject(at(10));
      expect(decide(dueTask({ ...task, catchUp: "skip" }), m(11) + 1).enqueue).toBeUndefined();
    });
    it("has no next time while its occurrence waits for another run", () => {
      const kept = decide(dueTask({ ...task, overlap: "queue-one", running: true }), m(11));
      expect(kept).toMatchObject({ next: undefined, pending: [at(10)] });
    });
    it.each(["due", "waiting", "retried"])("finishes with the last of maxRuns: %s", (how) => {
      const limited = { ...task, schedule: taskSchedule({ every: "2m", anchor: "finish", maxRuns: 3 }) };
      const nextAfter = (fired: number) => {
        if (how === "due") return decide(dueTask({ ...limited, fired }), m(10)).next;
        const [trigger, counts] = how === "waiting" ? (["schedule", 0] as const) : (["retry", 1] as const);
        const waits: Pending = { ...key(10), ...at(10), trigger };
        const held = dueTask({ ...limited, fired: fired + counts, pending: [waits] });
        return decide({ ...held, slot: undefined }, m(10)).next;
      };
      expect(nextAfter(1)).toEqual({ afterFinish: m(2) });
      expect(nextAfter(2)).toBeUndefined();
    });
    it("finishes beyond its end", () => {
      expect(decide(dueTask({ ...task, ...at(61) }), m(61))).toEqual({
        skipped: [],
        cursor: m(61),
        next: undefined,
        pending,
      });
    });
    it("skips excluded times", () => {
      const except = [{ calendar: "*-*-* 00:10..19:00" }];
      const excluding = taskSchedule({ every: "2m", anchor: "finish", except });
      for (const now of [m(10), m(11)]) {
        expect(decide(dueTask({ ...task, schedule: excluding }), now)).toEqual({
          skipped: [{ reason: "excluded", from: m(10), to: m(10) }],
          cursor: m(10),
          next: at(20),
          pending,
        });
      }
    });
  });

  it("replans from the oldest owed time, or else from now", () => {
    expect(replan(minutely(), { nominal: m(10), fired: 0 }, m(12)).slot).toEqual(at(10));
    expect(replan(minutely(), { nominal: m(12), fired: 0 }, m(12)).slot).toEqual(at(12));
    expect(replan(minutely(), { nominal: m(10) + 5, fired: 0 }, m(12)).slot).toEqual(at(11));
    expect(replan(minutely(), { fired: 0 }, m(12))).toEqual({ slot: at(13), passed: undefined });
    expect(replan(minutely(), { nominal: m(90), cursor: m(12), fired: 0 }, m(12)).passed).toBeUndefined();
    expect(replan(minutely(), { nominal: m(90), cursor: m(5), fired: 0 }, m(12))).toEqual({
      slot: at(13),
      passed: { reason: "superseded", from: m(6), to: m(12) },
    });
    expect(replan(minutely(), { nominal: m(90), cursor: m(11), fired: 0 }, m(12) + 1).passed).toEqual({
      reason: "superseded",
      from: m(12),
      to: m(12),
    });
    expect(replan(minutely(), { nominal: m(90), cursor: m(11), fired: 0 }, m(12)).passed).toBeDefined();
  });
});

describe("a decision while a run is open", () => {
  const one = (trigger: Pending["trigger"], minutes: number, more: Partial<Pending> = {}): Pending => ({
    ...key(minutes),
    ...at(minutes),
    trigger,
    ...more,
  });
  const later = one("self", 30, { at: m(30) });
  const retry = one("retry", 7, { at: m(30) });
  const own = one("schedule", 10);
  const beside = (overlap: OverlapPolicy, pending: Pending[], more: Partial<DueTask> = {}) =>
    decide(dueTask({ ...at(10), schedule: minutely(), overlap, running: true, pending, ...more }), m(10));
  const skipped = (reason: SkipReason, minutes: number) => ({ reason, from: m(minutes), to: m(minutes) });

  it.each<[OverlapPolicy, what: string, waits: Pending[], Partial<Decision>]>([
    ["queue-one", "none waits", [], { pending: [own], skipped: [] }],
    ["queue-one", "what has its own time is not in its place", [later], { pending: [later, own] }],
    ["queue-one", "one waits", [one("manual", 9)], { skipped: [skipped("overlap", 10)] }],
    ["queue-all", "fewer wait", [one("schedule", 8)], { pending: [one("schedule", 8), own] }],
    [
      "queue-all",
      "as many wait",
      [one("schedule", 8), one("schedule", 9)],
      { pending: [one("schedule", 8), one("schedule", 9)], skipped: [skipped("overlap", 10)] },
    ],
    [
      "cancel-running",
      "all that wait give way, but for what has its own time",
      [one("schedule", 8), one("manual", 9), later, retry],
      {
        pending: [later, own],
        skipped: [skipped("retry-superseded", 7), skipped("superseded", 8), skipped("manual-superseded", 9)],
        cancel: true,
      },
    ],
  ])("%s: %s", (overlap, _what, waits, decision) => {
    const decided = beside(overlap, waits, { policies: { maxQueued: 2 } });
    expect(decided).toMatchObject({ next: at(11), cursor: m(10), ...decision });
    expect(decided.enqueue).toBeUndefined();
    expect(decided.cancel).toBe(decision.cancel);
  });
  it("queue-all: keeps 100 pending occurrences unless the task sets a limit", () => {
    const many = Array.from({ length: 100 }, (_, i) => one("schedule", i / 100));
    expect(beside("queue-all", many.slice(1)).pending).toHaveLength(100);
    expect(beside("queue-all", many).skipped).toEqual([skipped("overlap", 10)]);
  });
  it("a manual trigger keeps the pending retry, and its own overlap policy", () => {
    const by = { key: "hand", overlap: "queue-one" } as const;
    const task = dueTask({ ...at(20), schedule: minutely(), running: true, pending: [retry] });
    const waits = { key: "hand", ...at(12), trigger: "manual", overlap: "queue-one" };
    expect(decideTrigger(task, m(12), by)).toEqual({ skipped: [], next: "kept", pending: [retry, waits] });
    const named = decideTrigger(task, m(12), { ...by, by: "ann" });
    expect(named.pending).toEqual([retry, { ...waits, by: "ann" }]);
    expect(decideTrigger(task, m(12), { key: "hand" })).toMatchObject({
      skipped: [skipped("manual-overlap", 12)],
      pending: [retry],
    });
  });
  it("pending occurrences count for maxRuns, except those a handler asked for", () => {
    const schedule = taskSchedule({ every: "1m", maxRuns: 3 });
    const nextOf = (fired: number, waits: Pending[]) =>
      beside("queue-all", waits, { schedule, fired, policies: { maxQueued: 2 } }).next;
    expect(nextOf(1, [])).toEqual(at(11));
    expect(nextOf(2, [])).toBeUndefined();
    expect(nextOf(1, [one("schedule", 9)])).toBeUndefined();
    expect(nextOf(1, [one("self", 9)])).toEqual(at(11));
  });
});

describe("a trigger that supersedes pending occurrences", () => {
  const waits: Pending = { ...key(10), ...at(10), trigger: "schedule" };
  const by = { key: "hand", overlap: "cancel-running" } as const;
  /** Its schedule has no next time until the pending occurrence has run. */
  const hanging = (schedule: Schedule, more: Partial<DueTask> = {}): DueTask => ({
    ...dueTask({ ...at(10), schedule: taskSchedule(schedule), running: true, pending: [waits], ...more }),
    slot: undefined,
  });

  it.each<[string, Schedule, fired: number, Decision["next"]]>([
    ["of a fixed delay: a delay from now", { every: "2m", anchor: "finish" }, 0, at(14)],
    ["of a fixed delay, its last by maxRuns", { every: "2m", anchor: "finish", maxRuns: 3 }, 2, at(14)],
    [
      "the last of maxRuns: the first time after it, also if that is past",
      { every: "1m", maxRuns: 3 },
      2,
      at(11),
    ],
    ["the last of maxRuns, which are spent meanwhile", { every: "1m", maxRuns: 3 }, 3, undefined],
    ["the last before its end", { every: "1m", end: new Date(m(10)).toISOString() }, 2, undefined],
  ])("gives the schedule a next time: %s", (_what, schedule, fired, next) => {
    expect(decideTrigger(hanging(schedule, { fired }), m(12), by)).toEqual({
      skipped: [{ reason: "superseded", from: m(10), to: m(10) }],
      next,
      pending: [{ key: "hand", ...at(12), trigger: "manual", overlap: "cancel-running" }],
      cancel: true,
    });
  });
  it("continues after the last of several superseded times, even if the clock went back", () => {
    const later: Pending = { ...key(14), ...at(14), trigger: "schedule" };
    const task = hanging({ every: "1m", maxRuns: 3 }, { fired: 1, pending: [waits, later] });
    expect(decideTrigger(task, m(12), by).next).toEqual(at(15));
  });
  it("keeps the next time if it depends on something else", () => {
    const delayed = { every: "2m", anchor: "finish" } as const;
    const manual: Pending = { ...waits, trigger: "manual" };
    expect(decideTrigger(hanging(delayed, { pending: [manual] }), m(12), by).next).toBe("kept");
    expect(decideTrigger(hanging(delayed), m(12), { key: "hand", overlap: "queue-all" }).next).toBe("kept");
    const scheduled = { ...hanging({ every: "1m" }), slot: at(13) };
    expect(decideTrigger(scheduled, m(12), by).next).toBe("kept");
  });
});

describe("a retry that is still pending when the next time is due", () => {
  const retry: Pending = { ...key(9), ...at(9), trigger: "retry", at: m(9) + 1 };
  const gone = { reason: "retry-superseded", from: m(9), to: m(9) } as const;
  const given = { ...at(10), schedule: minutely(), pending: [retry] };

  it.each<[string, Partial<DueTask>, now: number, Partial<Decision>]>([
    ["punctual", {}, m(10), { enqueue: { ...key(10), ...at(10), trigger: "schedule" }, skipped: [gone] }],
    [
      "the latest of a backlog",
      {},
      m(12),
      {
        enqueue: { ...key(12), ...at(12), trigger: "catch-up", missed: { from: m(10), to: m(11) } },
        skipped: [{ reason: "missed", from: m(10), to: m(11) }, gone],
      },
    ],
    [
      "the first of a backlog",
      { catchUp: "all", overlap: "allow", running: true },
      m(12),
      { enqueue: { ...key(10), ...at(10), trigger: "catch-up" }, skipped: [gone] },
    ],
    [
      "none of a backlog",
      { catchUp: "skip" },
      m(12),
      { skipped: [{ reason: "missed", from: m(10), to: m(12) }, gone], next: at(13) },
    ],
    [
      "none that is old enough",
      { catchUp: "all", policies: { catchUpLimits: { window: "10s" } } },
      m(12) + 30_000,
      { skipped: [{ reason: "missed", from: m(10), to: m(12) }, gone], next: at(13) },
    ],
    [
      "skipped itself",
      { running: true },
      m(10),
      { skipped: [gone, { reason: "overlap", from: m(10), to: m(10) }] },
    ],
  ])("gives way to it: %s", (_what, more, now, decision) => {
    const decided = decide(dueTask({ ...given, ...more }), now);
    expect(decided).toMatchObject({ ...decision, pending: [] });
    expect(decided.enqueue).toEqual(decision.enqueue);
  });

  it("is enqueued while that time is still in the future", () => {
    expect(decide(dueTask(given), m(10) - 1)).toMatchObject({ enqueue: { trigger: "retry" }, skipped: [] });
  });
  it("is enqueued if maxRuns allows no more occurrences of the schedule", () => {
    const schedule = taskSchedule({ every: "1m", maxRuns: 3 });
    const spent = dueTask({ ...given, schedule, fired: 3 });
    expect(decide(spent, m(10))).toMatchObject({ enqueue: { trigger: "retry" }, skipped: [], pending: [] });
  });
  it("keeps other pending occurrences ahead of the schedule", () => {
    for (const trigger of ["manual", "self", "schedule"] as const) {
      const waits: Pending = { key: "k", ...at(9), trigger };
      const task = dueTask({ ...given, pending: [retry, waits] });
      expect(decide(task, m(12))).toMatchObject({ enqueue: { key: "k" }, skipped: [], next: "kept" });
      // The due time then belongs to the schedule.
      expect(decide({ ...task, pending: [retry] }, m(12)).enqueue?.trigger).toBe("catch-up");
    }
  });
  it("replaces the next time if the schedule is a delay after each run", () => {
    const schedule = taskSchedule({ every: "2m", anchor: "finish" });
    // An edit or a resume has set a next time meanwhile.
    for (const slot of [undefined, at(10)]) {
      expect(decide({ ...dueTask({ ...given, schedule }), slot }, m(60))).toMatchObject({
        enqueue: { trigger: "retry" },
        next: { afterFinish: m(2) },
      });
    }
  });
});

it.each([
  ["a retry", m(9)],
  ["what waited for a run's end", undefined],
])("%s is not enqueued before its due time if the clock went back", (_, at) => {
  const one = { key: "k", nominal: m(10), due: m(10), trigger: "retry", ...(at ? { at } : {}) } as const;
  const task = dueTask({ nominal: m(20), due: m(20), schedule: minutely(), pending: [one] });
  expect(decide(task, m(10) - 1)).toMatchObject({ pending: [one] });
  expect(decide(task, m(10) - 1).enqueue).toBeUndefined();
  expect(decide(task, m(10)).enqueue).toMatchObject({ key: "k" });
});

describe("a run in the way that workers were slow to begin", () => {
  const SECOND = 1_000;
  const due = m(10);
  const schedule = taskSchedule({ every: "1s" });
  /** Decides the occurrence at `due` a little later, while the previous run is still open. */
  const behind = (begun: number | undefined, more: Partial<DueTask> = {}, nominal = due - SECOND) =>
    decide(
      dueTask({ nominal: due, due, schedule, running: true, inWay: { nominal, begun }, ...more }),
      due + 3,
    );
  const waits = { key: `k${due}`, nominal: due, due, trigger: "schedule" } as const;
  const kept = {
    skipped: [],
    cursor: due,
    next: { nominal: due + SECOND, due: due + SECOND },
    pending: [waits],
  };
  const skipped = (reason: SkipReason) => ({
    ...kept,
    skipped: [{ reason, from: due, to: due }],
    pending: [] as Pending[],
  });

  it.each<[string, Decision, object]>([
    ["nobody has begun it: waits", behind(undefined), kept],
    ["it began in the second half: waits", behind(due - 496), kept],
    ["it began in the first half: the task is slow", behind(due - 497), skipped("overlap")],
    ["it is 5 s late: waits", behind(undefined, {}, due + 3 - 5_000), kept],
    ["it is later: does the work of this one too", behind(undefined, {}, due + 2 - 5_000), skipped("behind")],
    ["what is late is not wanted", behind(undefined, { catchUp: "skip" }), skipped("behind")],
    ["when it began is unknown", behind(undefined, { inWay: undefined }), skipped("overlap")],
    [
      "one waits already",
      behind(undefined, { pending: [{ ...waits, key: "k", nominal: due - 500 }] }),
      { ...skipped("behind"), pending: [{ ...waits, key: "k", nominal: due - 500 }] },
    ],
    [
      "queue-all, as many wait as may",
      behind(undefined, {
        overlap: "queue-all",
        policies: { maxQueued: 1 },
        pending: [{ ...waits, key: "k" }],
      }),
      { ...skipped("behind"), pending: [{ ...waits, key: "k" }] },
    ],
  ])("%s", (_, decision, expected) => {
    expect(decision).toEqual(expected);
  });

  it("does not start while the run is open, and starts when it has ended", () => {
    const task = { nominal: due + SECOND, due: due + SECOND, schedule, pending: [waits] };
    const inWay = { nominal: due - SECOND, begun: due };
    expect(decide(dueTask({ ...task, running: true, inWay }), due + 500).enqueue).toBeUndefined();
    expect(decide(dueTask(task), due + 500)).toMatchObject({ enqueue: waits, pending: [], next: "kept" });
  });

  it("a manual trigger is refused at once, whatever the reason", () => {
    const task = dueTask({
      nominal: due,
      due,
      schedule,
      running: true,
      inWay: { nominal: due - SECOND, begun: undefined },
    });
    const { skipped: refused, pending: waiting } = decideTrigger(task, due - 500, { key: "m" });
    expect([refused.map(({ reason }) => reason), waiting]).toEqual([["manual-overlap"], []]);
  });
});

it("a pending occurrence with its own overlap policy obeys that, not the task's", () => {
  const waits = (overlap: OverlapPolicy): Pending => ({ key: "k", ...at(9), trigger: "manual", overlap });
  const decided = (own: OverlapPolicy, overlap: OverlapPolicy) =>
    decide(
      dueTask({ ...at(20), schedule: minutely(), overlap, running: true, pending: [waits(own)] }),
      m(10),
    );
  expect(decided("queue-one", "allow").enqueue).toBeUndefined();
  expect(decided("allow", "skip").enqueue).toMatchObject({ key: "k" });
});

describe("a step of a backfill", () => {
  const walk = { id: "b", at: m(3), to: m(5), overlap: "allow" } as const;
  const waits: Pending = { key: "w", ...at(9), trigger: "retry" };
  const given = { ...at(10), schedule: minutely(), pending: [waits] };
  const enqueue = { key: `k${m(4)}/b`, ...at(4), trigger: "backfill" } as const;
  const kept = { skipped: [], next: "kept", pending: [waits] } as const;

  it.each<[what: string, overlap: OverlapPolicy, running: boolean, decision: Decision]>([
    ...OVERLAP_POLICIES.map((overlap): [string, OverlapPolicy, boolean, Decision] => [
      `${overlap}: enqueues if no run is in its way`,
      overlap,
      false,
      { ...kept, enqueue },
    ]),
    ["allow: enqueues alongside a run", "allow", true, { ...kept, enqueue }],
    ["skip: skips", "skip", true, { ...kept, skipped: [{ reason: "overlap", from: m(4), to: m(4) }] }],
    ["queue-one: the backfill waits", "queue-one", true, kept],
    ["queue-all: the backfill waits", "queue-all", true, kept],
    [
      "cancel-running: cancels the run, and the backfill waits",
      "cancel-running",
      true,
      { ...kept, cancel: true },
    ],
  ])("%s", (_, overlap, running, decision) => {
    const step = decideStep(dueTask({ ...given, running }), { ...walk, overlap });
    expect(step).toEqual({ nominal: m(4), decision });
  });

  it("ends after the last time of its range, or of the schedule", () => {
    expect(decideStep(dueTask(given), { ...walk, at: m(4) })?.nominal).toBe(m(5));
    expect(decideStep(dueTask(given), { ...walk, at: m(5) })).toBeUndefined();
    expect(
      decideStep(dueTask({ ...given, schedule: minutely(m(4)) }), { ...walk, at: m(4) }),
    ).toBeUndefined();
  });

  it("steps only through times of its ranges", () => {
    const ranges = [
      [m(1), m(2)],
      [m(4), m(4)],
      [m(5) - 1, m(5) - 1],
      [m(7) - 1, m(8) + 1],
    ] as const;
    const taken = [];
    for (let at: number | undefined = m(0); at !== undefined; ) {
      at = nextStep(minutely(), { at, to: m(7), ranges });
      if (at !== undefined) taken.push(at / MINUTE);
    }
    expect(taken).toEqual([1, 2, 4, 7].map((n) => m(n) / MINUTE));
    expect(decideStep(dueTask(given), { ...walk, at: m(2), ranges })?.nominal).toBe(m(4));
    expect(nextStep(minutely(), { at: m(0), to: m(7), ranges: [] })).toBeUndefined();
  });

  it("counts for maxRuns, and leaves the schedule no time after the last one", () => {
    const schedule = taskSchedule({ every: "1m", maxRuns: 3 });
    const task = dueTask({ ...given, schedule });
    expect(decideStep({ ...task, fired: 1 }, walk)?.decision).toMatchObject({ enqueue, next: "kept" });
    expect(decideStep({ ...task, fired: 2 }, walk)?.decision).toEqual({ ...kept, enqueue, next: undefined });
    // There is no next time to remove.
    const delayed = decideStep({ ...task, fired: 2, slot: undefined }, walk);
    expect(delayed?.decision.next).toBe("kept");
    expect(decideStep({ ...task, fired: 3 }, walk)).toBeUndefined();
    // An occurrence of the schedule that waits for the end of a run counts too.
    const waiting = { key: "s", ...at(9), trigger: "schedule" } as const;
    expect(decideStep({ ...task, fired: 2, pending: [waiting] }, walk)).toBeUndefined();
  });
});

describe("the failed items of a run", () => {
  const run = { id: "t@1.a", key: "k1", nominal: m(1) };
  const wait: Pending = { key: "k9", ...at(9), trigger: "schedule" };
  const enqueue = { key: "k1", ...at(1), trigger: "items", itemsOf: "t@1.a" };

  it.each<[string, Partial<DueTask>, object | undefined]>([
    [
      "are done as the run's occurrence; the rest is unchanged",
      { pending: [wait] },
      { enqueue, next: "kept" },
    ],
    ["not beside another run", { running: true }, undefined],
    ["but if the policy allows it", { running: true, overlap: "allow" }, { enqueue }],
    [
      "not while a retry of their run waits",
      { overlap: "allow", pending: [{ ...wait, key: "k1" }] },
      undefined,
    ],
  ])("%s", (_, given, decision) => {
    const task = { overlap: "skip", running: false, pending, ...given } as const;
    const decided = decideItems(task, run);
    if (decision === undefined) return expect(decided).toBeUndefined();
    expect(decided).toMatchObject({ ...decision, skipped: [], pending: task.pending });
    expect(decided).not.toHaveProperty("cursor");
  });
});

describe("a shadow", () => {
  const shadowed = (minutes: number) => ({ reason: "shadow", from: m(minutes), to: m(minutes) }) as const;
  const shadow = (given: Partial<DueTask>, now = m(10)) =>
    decide(dueTask({ ...at(10), schedule: minutely(), shadow: true, ...given }), now);

  it("decides as a live task does, and skips what that would enqueue", () => {
    const schedules = [
      minutely(),
      taskSchedule({ every: "1m", maxRuns: 3 }),
      taskSchedule({ every: "1m", jitter: "50%" }),
    ];
    for (const schedule of schedules)
      for (const catchUp of ["skip", "one", "all"] as const)
        for (const fired of [0, 2, 3])
          for (const now of [m(10), m(10) + 30_000, m(14)]) {
            const task = dueTask({ ...at(10), schedule, catchUp, fired });
            const { enqueue, ...live } = decide(task, now);
            const { shadow: would, ...decision } = decide({ ...task, shadow: true }, now);
            expect(would).toEqual(enqueue);
            const skipped = enqueue && { reason: "shadow", from: enqueue.nominal, to: enqueue.nominal };
            expect(decision).toEqual({ ...live, skipped: [...live.skipped, ...(skipped ? [skipped] : [])] });
          }
  });

  it.each(OVERLAP_POLICIES)("has no run in the way, whatever is open: %s", (overlap) => {
    const decision = shadow({ overlap, running: true });
    expect(decision).toMatchObject({ skipped: [shadowed(10)], cursor: m(10), next: at(11), pending: [] });
    expect(decision).not.toHaveProperty("cancel");
  });

  it("takes a run for as short as none with a fixed delay", () => {
    const schedule = taskSchedule({ every: "5m", anchor: "finish" });
    expect(shadow({ schedule })).toMatchObject({ skipped: [shadowed(10)], next: at(15) });
  });

  it("runs what waits: it was asked for, or is owed from before", () => {
    const asked = { ...key(9), ...at(9), trigger: "manual" } as const;
    expect(shadow({ pending: [asked] })).toMatchObject({ enqueue: asked, skipped: [], next: "kept" });
    const later = { ...asked, at: m(30) };
    expect(shadow({ pending: [later] })).toMatchObject({ skipped: [shadowed(10)], pending: [later] });
  });

  it("keeps nothing for the end of a freeze", () => {
    const freezes = [{ id: "f", all: true, from: 0, until: m(20), by: "ann", created: 0 }] as const;
    expect(shadow({ freezes, once: true, catchUp: "skip" })).toMatchObject({
      skipped: [shadowed(10)],
      pending: [],
    });
    expect(shadow({ freezes })).toMatchObject({ skipped: [{ reason: "frozen", from: m(10) }] });
  });
});
