import { previewSchedule, type Schedule } from "@carillon/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  daysIn,
  exceptionsOf,
  namedIn,
  namesIn,
  patternOf,
  rowsOf,
  timesIn,
  withExceptions,
  withPattern,
  withRows,
} from "../ui/src/lib/schedule-form.js";

const someOf = (least: number, most: number, atLeast = 0, atMost = most) =>
  fc
    .uniqueArray(fc.integer({ min: least, max: most }), { minLength: atLeast, maxLength: atMost })
    .map((values) => values.sort((a, b) => a - b));
const two = (value: number) => String(value).padStart(2, "0");
const days = fc.oneof(
  someOf(0, 6, 0, 6).map((week) => ({ week, month: [] })),
  someOf(1, 31).map((month) => ({ week: [], month })),
);
const kinds = fc.constantFrom({ cron: "* * * * *" }, { calendar: "daily", timezone: "Europe/Berlin" });
const members = fc.constantFrom<Record<string, unknown>[]>(
  { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" },
  { calendar: "Mon..Fri 09:00", dst: { gap: "skip" } },
  { every: "10m", origin: "2026-01-01T00:00:00Z" },
  { at: 5 },
  { cron: "*/5 * * * *", start: "2026-01-01T00:00:00Z" },
  { calendar: "Sat *-*-01..07 10:00", except: [{ calendar: "*-12-24" }] },
) as fc.Arbitrary<Record<string, unknown>>;

describe("days and times", () => {
  it("are read from the text that they are written as", () => {
    const grid = fc.tuple(someOf(0, 23, 1, 6), someOf(0, 59, 1, 4));
    fc.assert(
      fc.property(kinds, days, grid, (row, chosen, [hours, minutes]) => {
        const times = hours.flatMap((hour) => minutes.map((minute) => `${two(hour)}:${two(minute)}`));
        const pattern = { ...chosen, times };
        const [written, ...more] = withPattern(row, pattern);
        expect(more).toEqual([]);
        expect(patternOf(written ?? {})).toEqual(pattern);
        expect({ ...written, cron: 0, calendar: 0 }).toEqual({ ...row, cron: 0, calendar: 0 });
      }),
    );
  });

  it("that need several rows are in one of them each", () => {
    const any = fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 })), {
      minLength: 1,
      maxLength: 8,
      selector: String,
    });
    fc.assert(
      fc.property(kinds, days, any, (row, chosen, pairs) => {
        const times = pairs.map(([hour, minute]) => `${two(hour)}:${two(minute)}`).sort();
        const read = withPattern(row, { ...chosen, times }).map((one) => patternOf(one));
        expect(read.flatMap((one) => one?.times ?? []).sort()).toEqual(times);
        for (const one of read) expect(one).toMatchObject(chosen);
      }),
    );
  });

  it.each([
    [{ cron: "0 9,17 * * 1-5" }, { week: [0, 1, 2, 3, 4], month: [], times: ["09:00", "17:00"] }],
    [{ cron: "0 9 * * sun,Mon" }, { week: [0, 6], month: [], times: ["09:00"] }],
    [{ cron: "0 9 * * 0-7" }, { week: [], month: [], times: ["09:00"] }],
    [{ cron: "5 4 1,15 * *" }, { week: [], month: [1, 15], times: ["04:05"] }],
    [{ calendar: "Mon..Wed,Sun 2:30" }, { week: [0, 1, 2, 6], month: [], times: ["02:30"] }],
    [{ calendar: "*-*-01..03 8..9:00:00" }, { week: [], month: [1, 2, 3], times: ["08:00", "09:00"] }],
  ])("of %j are shown, and mean what the engine computes", (row, pattern) => {
    expect(patternOf(row)).toEqual(pattern);
    const timesOf = (schedule: object) =>
      previewSchedule(schedule as Schedule, { from: 0, count: 40 }).times.map(({ utc }) => utc);
    expect(withPattern(row, pattern).map(timesOf)).toEqual([timesOf(row)]);
  });

  it.each([
    ...[
      "*/5 * * * *",
      "0 9 1 * 1",
      "0 9 * 6 *",
      "0 0 9 * * *",
      "H 3 * * *",
      "0 9 L * *",
      "0 9 * * 5L",
      "0 9 * * 5-1",
      "61 9 * * *",
      "",
      "@daily",
    ].map((cron) => ({ cron })),
    ...[
      "daily",
      "09:00 UTC",
      "Mon *-*-01 09:00",
      "*-12-24 09:00",
      "*:0/15",
      "09:00:30",
      "*-*~01 09:00",
      "x 09:00",
    ].map((calendar) => ({ calendar })),
    { every: "1h" },
    { calendar: 7 },
  ])("of %j stay a text", (row) => {
    expect(patternOf(row)).toBeUndefined();
  });

  it("are read as people type them", () => {
    expect(timesIn(" 9:00,17:30  9:00")).toEqual(["09:00", "17:30"]);
    for (const wrong of ["", "9", "24:00", "9:60", "9:00 x"]) expect(timesIn(wrong)).toBeUndefined();
    expect(daysIn("15, 1")).toEqual([1, 15]);
    expect([daysIn(""), daysIn("32"), daysIn("x")]).toEqual([[], undefined, undefined]);
  });
});

describe("a schedule", () => {
  const rest = fc.record(
    { jitter: fc.constant("5m"), except: fc.constant([{ named: "holidays" }]), other: fc.constant(1) },
    { requiredKeys: [] },
  );
  const rows = fc.array(members, { minLength: 1, maxLength: 4 });

  it("has the rows that it was given, and keeps all else", () => {
    fc.assert(
      fc.property(rows, rows, rest, (before, after, more) => {
        const schedule = withRows({ ...more }, before);
        expect(rowsOf(schedule)).toEqual(before);
        expect(withRows(schedule, before)).toBe(schedule);
        const edited = withRows(schedule, after);
        expect(rowsOf(edited)).toEqual(after);
        expect(edited).toMatchObject(more);
      }),
    );
  });

  it("without a kind, or with members that are none, is not shown as rows", () => {
    const others = [{}, { any: 1 }, { any: [1] }, { any: [{}] }, { cron: {} }, { any: [{ any: [] }] }];
    for (const other of others) expect(rowsOf(other)).toBeUndefined();
  });

  it("has exceptions, of which those that only name a calendar are chips", () => {
    const named = { named: "holidays" };
    const schedule = withExceptions({ cron: "0 9 * * *" }, [named, { named: "x", timezone: "UTC" }]);
    expect(exceptionsOf(schedule).map(namedIn)).toEqual(["holidays", undefined]);
    expect(withExceptions(schedule, [])).toEqual({ cron: "0 9 * * *" });
  });
});

it("the calendars that a schedule names are found, also those of a union's members", () => {
  const except = [{ named: "holidays" }, { calendar: "*-12-24" }];
  const any = [{ every: "1h", except: [{ named: "inventory" }] }, { cron: "0 9 * * *" }];
  expect(namesIn({ any, except })).toEqual(["holidays", "inventory"]);
  expect(namesIn({ manual: true })).toEqual([]);
});
