import {
  type CatchUpPolicy,
  type CompiledSchedule,
  type Decision,
  decide,
  firstNext,
  forbidden,
  type OverlapPolicy,
} from "@carillon/core";
import { describe, expect, it } from "vitest";

const MINUTE = 60_000;

/** Every minute; from a time on there may be no more. */
function minutely(end = Number.POSITIVE_INFINITY): CompiledSchedule {
  const floor = (t: number) => Math.floor(t / MINUTE) * MINUTE;
  return {
    next: (after) => (floor(after) + MINUTE <= end ? floor(after) + MINUTE : undefined),
    latest: (at) => Math.min(floor(at), end),
  };
}
const m = (minutes: number) => minutes * MINUTE;

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
    enqueue: { nominal: m(10), trigger: "schedule" },
    skipped: [],
    cursor: m(10),
    next: m(11),
  } as const;
  const overlapped = {
    skipped: [{ reason: "overlap", from: m(10), to: m(10) }],
    cursor: m(10),
    next: m(11),
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
      { enqueue: { nominal: m(10), trigger: "catch-up" }, skipped: [], cursor: m(10), next: m(11) },
    ],
    ["a backlog, walked beside a run", { catchUp: "all", ...busy }, m(15), overlapped],
    [
      "a backlog, walked, allowed beside a run",
      { catchUp: "all", ...beside },
      m(15),
      { enqueue: { nominal: m(10), trigger: "catch-up" }, skipped: [], cursor: m(10), next: m(11) },
    ],
    [
      "a backlog of two, the latest of it",
      { catchUp: "one", ...free },
      m(11),
      {
        enqueue: { nominal: m(11), trigger: "catch-up", missed: { from: m(10), to: m(10) } },
        skipped: [{ reason: "missed", from: m(10), to: m(10) }],
        cursor: m(11),
        next: m(12),
      },
    ],
    [
      "a backlog of a year, the latest of it",
      { catchUp: "one", ...free },
      m(525_600) + 5,
      {
        enqueue: { nominal: m(525_600), trigger: "catch-up", missed: { from: m(10), to: m(525_599) } },
        skipped: [{ reason: "missed", from: m(10), to: m(525_599) }],
        cursor: m(525_600),
        next: m(525_601),
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
        next: m(14),
      },
    ],
    [
      "a backlog, none of it",
      { catchUp: "skip", ...free },
      m(13) + 7,
      { skipped: [{ reason: "missed", from: m(10), to: m(13) }], cursor: m(13), next: m(14) },
    ],
  ];
  it.each(table)("%s: %j at %d", (_what, task, now, decision) => {
    expect(decide({ nominal: m(10), schedule: minutely(), ...task }, now)).toEqual(decision);
  });

  describe("about the last time of a schedule", () => {
    const last = { nominal: m(10), schedule: minutely(m(10)), overlap: "skip", running: false } as const;
    it.each(["skip", "one", "all"] as const)(
      "catchUp %s: enqueues within the grace, and finishes",
      (catchUp) => {
        expect(decide({ ...last, catchUp }, m(11))).toEqual({
          enqueue: { nominal: m(10), trigger: "schedule" },
          skipped: [],
          cursor: m(10),
          next: undefined,
        });
      },
    );
    it.each(["one", "all"] as const)("catchUp %s: enqueues it however late", (catchUp) => {
      expect(decide({ ...last, catchUp }, m(10_000)).enqueue?.nominal).toBe(m(10));
    });
    it("catchUp skip: misses it 1 ms after the grace", () => {
      expect(decide({ ...last, catchUp: "skip" }, m(11) + 1)).toEqual({
        skipped: [{ reason: "missed", from: m(10), to: m(10) }],
        cursor: m(10),
        next: undefined,
      });
    });
    it("catchUp skip: the grace can be set", () => {
      expect(decide({ ...last, catchUp: "skip" }, m(10) + 5, 5).enqueue).toBeDefined();
      expect(decide({ ...last, catchUp: "skip" }, m(10) + 6, 5).enqueue).toBeUndefined();
    });
    it("beside a run it is skipped, and the task finishes", () => {
      expect(decide({ ...last, catchUp: "all", running: true }, m(10))).toEqual({
        skipped: [{ reason: "overlap", from: m(10), to: m(10) }],
        cursor: m(10),
        next: undefined,
      });
    });
  });

  /** Whatever the policies and however late: each time between two cursors is decided once, and no other. */
  it.each(["skip", "one", "all"] as const)(
    "catchUp %s: leaves no time out and decides none twice",
    (catchUp) => {
      for (const running of [false, true]) {
        for (const step of [1, 59_999, 60_000, 60_001, 150_000, 600_000]) {
          const decided: number[] = [];
          let nominal: number | undefined = m(10);
          for (let now = m(10); now < m(100) && nominal !== undefined; now += step) {
            while (nominal !== undefined && nominal <= now) {
              const task = { nominal, schedule: minutely(), overlap: "skip", catchUp, running } as const;
              const decision: Decision = decide(task, now);
              for (const { from, to } of decision.skipped)
                for (let t = from; t <= to; t += MINUTE) decided.push(t);
              if (decision.enqueue) decided.push(decision.enqueue.nominal);
              expect(decision.cursor).toBe(Math.max(...decided));
              nominal = decision.next;
            }
            if (step === 1 && now > m(12)) break;
          }
          expect(decided).toEqual(Array.from({ length: decided.length }, (_, i) => m(10 + i)));
          expect(decided.length).toBeGreaterThan(1);
        }
      }
    },
  );

  it("forbids only what the policy forbids", () => {
    expect(forbidden("skip", true)).toBe(true);
    expect(forbidden("skip", false)).toBe(false);
    expect(forbidden("allow", true)).toBe(false);
  });

  it("starts strictly after now and after what is decided", () => {
    expect(firstNext(minutely(), undefined, m(10))).toBe(m(11));
    expect(firstNext(minutely(), m(5), m(10) - 1)).toBe(m(10));
    expect(firstNext(minutely(), m(20), m(10))).toBe(m(21));
    expect(firstNext(minutely(m(10)), undefined, m(10))).toBeUndefined();
  });
});
