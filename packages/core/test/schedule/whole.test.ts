import { describe, expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import {
  canonicalSchedule,
  compileSchedule,
  delayOf,
  describeSchedule,
  dueOf,
  lintSchedule,
  previewSchedule,
  reviewSchedule,
  type Schedule,
  usesSeed,
} from "../../src/schedule/index.js";
import { bounds, context, exclusions, pick, schedule } from "./arbitraries.js";

/* Fields of a whole schedule: jitter, `maxRuns`, and the delay after a run. */

const DAY = 86_400_000;
const utc = (text: string) => Date.parse(text);
const iso = (time: number | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
const time = fc.integer({ min: utc("2024-02-01T00:00:00Z"), max: utc("2024-12-01T00:00:00Z") });

describe("jitter", () => {
  const jitter = pick("1ms", "30s", "10m", "3d", "0.5%", "10%", "100%");

  test("makes times due in their order, between their nominal time and the next one", () => {
    fc.assert(
      fc.property(schedule, jitter, fc.string(), time, (plain, late, seed, from) => {
        const one = { ...plain, jitter: late } as Schedule;
        const compiled = compileSchedule(one, seed, context);
        const dues: number[] = [];
        let nominal = compiled.next(from);
        for (let n = 0; n < 5 && nominal !== undefined; n++) {
          const following = compiled.next(nominal);
          const due = dueOf(one, seed, compiled, nominal);
          expect(due).toBeGreaterThanOrEqual(nominal);
          if (following !== undefined) expect(due).toBeLessThan(following);
          dues.push(due);
          nominal = following;
        }
        expect(dues).toEqual([...dues].sort((a, b) => a - b));
      }),
      { numRuns: 300 },
    );
  });

  test("moves no nominal time, and gives the same due times after a restart", () => {
    fc.assert(
      fc.property(schedule, jitter, fc.string(), time, (plain, late, seed, from) => {
        const one = { ...plain, jitter: late } as Schedule;
        const compiled = compileSchedule(one, seed, context);
        let cursor: number | undefined = from;
        for (let n = 0; n < 4 && cursor !== undefined; n++) {
          const again = compileSchedule(structuredClone(one), seed, context);
          const next: number | undefined = compiled.next(cursor);
          expect(again.next(cursor)).toBe(next);
          expect(compileSchedule(plain, seed, context).next(cursor)).toBe(next);
          if (next !== undefined)
            expect(dueOf(one, seed, again, next)).toBe(dueOf(one, seed, compiled, next));
          cursor = next;
        }
        expect(usesSeed(one)).toBe(usesSeed(plain));
      }),
      { numRuns: 150 },
    );
  });

  test("has no effect if it is absent: the nominal time is the due time", () => {
    const compiled = {
      next: () => {
        throw new Error("asked");
      },
    };
    expect(dueOf({ every: "1h" }, "t", compiled, 5)).toBe(5);
  });

  test("leaves the last time unchanged as a share of the gap, but not as a duration", () => {
    const last = utc("2026-01-01T09:00:00Z");
    const due = (jitter: string) => {
      const one: Schedule = { every: "1h", end: "2026-01-01T09:59:59Z", jitter };
      return dueOf(one, "backup", compileSchedule(one), last);
    };
    expect(due("100%")).toBe(last);
    expect(due("1h")).toBeGreaterThan(last);
  });

  test("depends on the task and is stable", () => {
    const one: Schedule = { cron: "0 9 * * *", jitter: "30m" };
    const compiled = compileSchedule(one);
    const nominal = utc("2026-01-01T09:00:00Z");
    expect(iso(dueOf(one, "backup", compiled, nominal))).toBe("2026-01-01T09:09:13.043Z");
    expect(iso(dueOf(one, "report", compiled, nominal))).toBe("2026-01-01T09:21:30.356Z");
  });
});

describe("a delay after the finish of a run", () => {
  const hourly: Schedule = { every: "1h", anchor: "finish" };

  test.each<[Partial<Schedule>, string, string | undefined]>([
    [{}, "2026-01-01T10:17:03.250Z", "2026-01-01T11:17:03.250Z"],
    [{ start: "2026-01-01T12:00:00Z" }, "2026-01-01T10:17:00Z", "2026-01-01T12:00:00.000Z"],
    [{ start: "2026-01-01T12:00:00Z" }, "2026-01-01T11:59:59.999Z", "2026-01-01T12:00:00.000Z"],
    [{ start: "2026-01-01T12:00:00Z" }, "2026-01-01T12:00:00Z", "2026-01-01T13:00:00.000Z"],
    [{ end: "2026-01-01T11:17:00Z" }, "2026-01-01T10:17:00Z", "2026-01-01T11:17:00.000Z"],
    [{ end: "2026-01-01T11:16:59Z" }, "2026-01-01T10:17:00Z", undefined],
    // Adds whole delays to the finish until 2 January is over.
    [{ except: [{ calendar: "*-01-02" }] }, "2026-01-01T23:17:00Z", "2026-01-03T00:17:00.000Z"],
    [
      { except: [{ calendar: "*-01-02", timezone: "Asia/Tokyo" }] },
      "2026-01-01T14:17:00Z",
      "2026-01-02T15:17:00.000Z",
    ],
    [
      { start: "2026-01-02T00:30:00Z", except: [{ calendar: "*-01-02" }] },
      "2026-01-01T00:00:00Z",
      "2026-01-03T00:30:00.000Z",
    ],
    [{ except: [{ calendar: "*-01-02" }], end: "2026-01-03T00:00:00Z" }, "2026-01-01T23:17:00Z", undefined],
    [{ except: [{ calendar: "*-*-*" }] }, "2026-01-01T10:00:00Z", undefined],
    [
      { every: "5m", except: [{ calendar: "*:0/5:0/20", end: "2026-01-05T00:00:00Z" }] },
      "2026-01-01T00:00:00Z",
      "2026-01-05T00:05:00.000Z",
    ],
  ])("%j after %s", (limits, after, next) => {
    const compiled = compileSchedule({ ...hourly, ...limits } as Schedule);
    expect(iso(compiled.next(utc(after)))).toBe(next);
    expect(compiled.latest(utc(after))).toBeUndefined();
  });

  test("is a fixed rate that starts at the finish, whenever that is", () => {
    const every = pick("7s", "20m", "1h", "1d", "45d");
    fc.assert(
      fc.property(every, exclusions, bounds, time, (delay, except, limits, finish) => {
        const one: Schedule = { every: delay, anchor: "finish", except, ...limits };
        const compiled = compileSchedule(one, "", context);
        const start = limits.start === undefined ? Number.NEGATIVE_INFINITY : utc(limits.start);
        const first = finish < start ? start : finish + delayOf(one)!;
        const rate = compileSchedule({ every: delay, origin: iso(first), except, ...limits }, "", context);
        const next = compiled.next(finish);
        expect(next).toBe(rate.next(first - 1));
        expect(compileSchedule(one, "", context).next(finish)).toBe(next);
      }),
      { numRuns: 300 },
    );
  });

  test("has neither an end nor a beginning of its own", () => {
    const compiled = compileSchedule(hourly);
    expect(reviewSchedule(hourly).never).toBeUndefined();
    expect(reviewSchedule({ ...hourly, except: [{ calendar: "*-*-*" }] } as Schedule).never).toBeDefined();
    for (const after of [Number.NaN, Number.POSITIVE_INFINITY, 8.64e15]) {
      expect(compiled.next(after)).toBeUndefined();
    }
  });

  test("is read with delayOf", () => {
    expect([hourly, { every: "1h" }, { cron: "* * * * *" }].map((one) => delayOf(one as Schedule))).toEqual([
      3_600_000,
      undefined,
      undefined,
    ]);
  });
});

test("maxRuns does not bound the times", () => {
  const one: Schedule = { every: "1h", maxRuns: 2 };
  expect(compileSchedule(one).next(100 * DAY)).toBe(100 * DAY + 3_600_000);
});

test.each<[Schedule, string, string]>([
  [{ every: "120s", anchor: "finish" }, "2m after finish", "every 2m after the run before has finished"],
  [
    { every: "2m", anchor: "finish", end: "2026-01-01T00:00:00Z", except: [{ calendar: "Sun" }], maxRuns: 1 },
    "2m after finish end 2026-01-01T00:00:00Z except (Sun *-*-*) maxRuns 1",
    "every 2m after the run before has finished, until 2026-01-01T00:00:00Z, once at most, except on Sunday",
  ],
  [
    { cron: "0 9 * * *", jitter: "90s", maxRuns: 10 },
    "0 9 * * * jitter 1m30s maxRuns 10",
    "at 09:00, every day (UTC), up to 1m30s later, 10 times at most",
  ],
  [
    { cron: "0 9 * * *", jitter: "0.25%" },
    "0 9 * * * jitter 0.25%",
    "at 09:00, every day (UTC), up to 0.25% of the gap later",
  ],
  [
    { any: [{ every: "1h" }, { at: 0 }], jitter: "2.50%" },
    "any of (1970-01-01T00:00:00Z; 1h) jitter 2.5%",
    "every 1h, counted from the Unix epoch; or once, at 1970-01-01T00:00:00Z; up to 2.5% of the gap later",
  ],
])("%j in words", (one, canonical, description) => {
  expect(canonicalSchedule(one)).toBe(canonical);
  expect(describeSchedule(one)).toBe(description);
});

test.each<[Schedule, string[]]>([
  [{ every: "10s", jitter: "10s" }, []],
  [{ every: "10s", jitter: "11s" }, ["JITTER_CUT"]],
  [{ every: "10s", jitter: "100%" }, []],
  [{ cron: "0 9 * * *", jitter: "1d" }, []],
  [{ cron: "0 9 * * *", jitter: "2d" }, ["JITTER_CUT"]],
  [{ calendar: "hourly", jitter: "61m" }, ["JITTER_CUT"]],
  [{ every: "1 month", jitter: "40d" }, ["JITTER_CUT"]],
  [{ any: [{ cron: "0 9 * * *" }, { cron: "0 10 * * *" }], jitter: "3h" }, []],
  [{ at: 0, jitter: "10%" }, ["JITTER_IGNORED"]],
  [{ at: 0, jitter: "10s" }, []],
  [{ every: "500ms", anchor: "finish" }, []],
  [{ every: "5m", anchor: "finish", except: [{ calendar: "Sun" }, { named: "holidays" }] }, []],
  [{ every: "5m", anchor: "finish", except: [{ cron: "* 12 * * *" }] }, ["EXCLUDES_MOMENTS"]],
  [
    { every: "5m", anchor: "finish", except: [{ calendar: "*-02-30" }, { calendar: "*-*-*" }] },
    ["NEVER_FIRES", "EXCLUDES_NOTHING"],
  ],
])("%j is warned about with %j", (one, codes) => {
  const warnings = lintSchedule(one);
  expect(warnings.map(({ code }) => code)).toEqual(codes);
  for (const { remedy } of warnings) expect(remedy).toMatch(/^[A-Z].*\.$/);
});

describe("a preview", () => {
  const from = utc("2026-01-01T00:00:00Z");

  test("shows the due times of a schedule with jitter", () => {
    const one: Schedule = { cron: "0 9 * * *", timezone: "Europe/Paris", jitter: "30m" };
    const { times } = previewSchedule(one, { from, count: 2, seed: "backup" });
    const compiled = compileSchedule(one, "backup");
    expect(times.map(({ due }) => due?.time)).toEqual(
      times.map(({ time: nominal }) => dueOf(one, "backup", compiled, nominal)),
    );
    expect(times[0]?.due).toEqual({
      time: times[0]!.due!.time,
      utc: "2026-01-01T08:07:02.883Z",
      local: "2026-01-01T09:07:02.883+01:00",
    });
    expect(previewSchedule({ every: "1h" }, { from, count: 1 }).times[0]).not.toHaveProperty("due");
  });

  test("ends with the last run that maxRuns allows", () => {
    const one: Schedule = { every: "1h", maxRuns: 2 };
    const of = (count: number) => previewSchedule(one, { from, count });
    expect([of(1).times.length, of(1).exhausted]).toEqual([1, false]);
    expect([of(2).times.length, of(2).exhausted]).toEqual([2, true]);
    expect([of(9).times.length, of(9).exhausted]).toEqual([2, true]);
  });

  test("shows times of several zones in UTC or a given zone, with notes by each member's own zone", () => {
    const one: Schedule = {
      any: [
        { cron: "0 3 * * *", timezone: "Asia/Tokyo" },
        { cron: "30 2 * * *", timezone: "Europe/Berlin" },
      ],
    };
    const show = (timezone?: string) => {
      const seen = previewSchedule(one, { from: utc("2024-03-30T12:00:00Z"), count: 2, timezone });
      return [
        seen.timezone,
        ...seen.times.map(({ local, notes }) => [local, ...notes.map(({ code }) => code)]),
      ];
    };
    const special = ["MOVED", "DAY_LENGTH"];
    expect(show()).toEqual(["UTC", ["2024-03-30T18:00:00Z"], ["2024-03-31T01:00:00Z", ...special]]);
    expect(show("Asia/Kathmandu")).toEqual([
      "Asia/Kathmandu",
      ["2024-03-30T23:45:00+05:45"],
      ["2024-03-31T06:45:00+05:45", ...special],
    ]);
    expect(show("America/St_Johns")).toEqual([
      "America/St_Johns",
      ["2024-03-30T15:30:00-02:30"],
      ["2024-03-30T22:30:00-02:30", ...special],
    ]);
    expect(() => show("Moon/Base")).toThrow(expect.objectContaining({ code: "INVALID_TIMEZONE" }));
  });

  test("lists excluded times in order, at most 100", () => {
    const except = [{ calendar: "2026-01-01" }];
    const halves: Schedule = {
      any: [{ every: "12h" }, { every: "12h", origin: "2025-12-01T06:00:00Z" }],
      except,
    };
    const seen = previewSchedule(halves, { from, count: 2 });
    const times = ["06:00", "12:00", "18:00"].map((time) => `2026-01-01T${time}:00Z`);
    expect(seen.excluded.map((one) => one.utc)).toEqual(times);
    const named = times.map((time) => `${time} (2026-01-01)`).join(", ");
    expect(seen.times.map(({ notes }) => notes)).toEqual([
      [{ code: "EXCLUDED", text: `excluded before it: ${named}` }],
      [],
    ]);
    const notes = (every: string) => {
      const { times, excluded } = previewSchedule({ every, except }, { from, count: 1 });
      return [excluded.length, times[0]?.notes[0]?.text.replace(/.*2026-01-01\)/, "")];
    };
    expect(notes("2h")).toEqual([11, " and 8 more"]);
    expect(notes("1m")).toEqual([100, " and 97 or more"]);
    // Excludes fifty-nine times before each one that stays.
    const hours: Schedule = { every: "1m", except: [{ cron: "1-59 * * * *" }] };
    expect(previewSchedule(hours, { from, count: 3 }).excluded).toHaveLength(100);
  });

  test("lists times excluded after the last occurrence, but not after the last run", () => {
    const one: Schedule = {
      every: "1h",
      end: "2026-01-01T05:00:00Z",
      except: [
        { at: "2026-01-01T02:00:00Z" },
        { at: "2026-01-01T04:00:00Z" },
        { every: "1h", start: "2026-01-01T05:00:00Z" },
      ],
    };
    const of = (rest: object) => previewSchedule({ ...one, ...rest }, { from, count: 9 });
    const excluded = (rest: object) => of(rest).excluded.map(({ utc: text, by }) => [text.slice(11, 13), by]);
    expect([of({}).times.length, of({}).exhausted]).toEqual([2, true]);
    expect(excluded({})).toEqual([
      ["02", "2026-01-01T02:00:00Z"],
      ["04", "2026-01-01T04:00:00Z"],
      ["05", "every 1h"],
    ]);
    expect(excluded({ maxRuns: 2 })).toEqual([["02", "2026-01-01T02:00:00Z"]]);
    const minutes: Schedule = {
      every: "1m",
      end: "2026-01-01T02:30:00Z",
      except: [{ cron: "1-59 * * * *" }],
    };
    expect(previewSchedule(minutes, { from, count: 9 }).excluded).toHaveLength(100);
  });

  test("does not list a time as excluded that another member has", () => {
    const nine = { cron: "0 9 * * *" };
    const one: Schedule = { any: [{ ...nine, except: [{ calendar: "Thu" }] }, { cron: "0 9 * * 4" }] };
    const seen = previewSchedule(one, { from, count: 2 });
    expect(seen.times.map(({ utc: text }) => text)).toEqual(["2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z"]);
    expect(seen.excluded).toEqual([]);
  });

  test("has at most ten thousand times", () => {
    expect(previewSchedule({ every: "1s" }, { from, count: 10_000 }).times).toHaveLength(10_000);
    expect(() => previewSchedule({ every: "1s" }, { from, count: 10_001 })).toThrow("from 0 to 10000");
  });

  test("assumes runs of zero length for a delay, and says so", () => {
    const one: Schedule = { every: "12h", anchor: "finish", except: [{ calendar: "*-01-02" }] };
    const seen = previewSchedule(one, { from, count: 2 });
    expect(seen.times.map(({ utc: text }) => text)).toEqual(["2026-01-01T12:00:00Z", "2026-01-03T00:00:00Z"]);
    expect(seen.excluded.map(({ utc: text, by }) => [text, by])).toEqual([
      ["2026-01-02T00:00:00Z", "*-01-02"],
      ["2026-01-02T12:00:00Z", "*-01-02"],
    ]);
    expect(seen.notes).toEqual([{ code: "RUN_LENGTH", text: "the times assume runs of no length" }]);
    expect(previewSchedule({ every: "1h" }, { from, count: 1 }).notes).toEqual([]);
  });
});
