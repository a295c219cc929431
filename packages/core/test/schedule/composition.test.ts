import { describe, expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import { membersOf } from "../../src/schedule/compile.js";
import { GAVE_UP } from "../../src/schedule/exclude/excluding-schedule.js";
import {
  type CompiledSchedule,
  compileSchedule,
  previewSchedule,
  reviewSchedule,
  type Schedule,
  type ScheduleExclusion,
  type SimpleSchedule,
} from "../../src/schedule/index.js";
import { CALENDARS, context, pick, STARTS, schedule } from "./arbitraries.js";
import { soon } from "./soon.js";

/*
 * Compares unions, exclusions and bounds with filtering: walks the members one by one (other tests compare the engine
 * with crond and systemd), and checks each of their times against Intl's clock.
 */

const DAY = 86_400_000;
const HOUR = 3_600_000;
const SPAN = 4 * DAY;
const offsets = new Map<string, number>();
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const options = { timeZone, dateStyle: "short", timeStyle: "medium" } as const;
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat("sv-SE", options);
  formats.set(timeZone, format);
  return format;
}

/** In these zones clocks change at quarters of an hour. */
function wallOf(utc: number, timeZone: string): number {
  const quarter = Math.floor(utc / 900_000) * 900_000;
  const key = `${timeZone} ${quarter}`;
  let offset = offsets.get(key);
  if (offset === undefined) {
    const text = formatOf(timeZone).format(quarter);
    offset = Date.parse(`${text.replace(" ", "T")}Z`) - quarter;
    offsets.set(key, offset);
  }
  return utc + offset;
}

const compiledOnce = new Map<string, CompiledSchedule>();
function once(schedule: Schedule): CompiledSchedule {
  const key = Object.values(schedule).join("|");
  const compiled = compiledOnce.get(key) ?? compileSchedule(schedule);
  compiledOnce.set(key, compiled);
  return compiled;
}

/** The times of one member, without its limits. */
function walk(one: SimpleSchedule, from: number, to: number): number[] {
  const { start: _, end: __, except: ___, ...bare } = one;
  const compiled = compileSchedule(bare as Schedule);
  const times: number[] = [];
  for (let t = compiled.next(from); t !== undefined && t <= to; t = compiled.next(t)) times.push(t);
  return times;
}

/** The intended wall clock of a time: for one that a gap delayed, the time that it replaces. */
function meant(time: number, one: SimpleSchedule, timeZone: string): number {
  const wall = wallOf(time, timeZone);
  const before = wallOf(time - 1_000, timeZone) + 1_000;
  if (before >= wall || !("cron" in one || "calendar" in one)) return wall;
  const bare = "cron" in one ? { cron: one.cron } : { calendar: one.calendar };
  const still = once(bare);
  return still.latest(wall) === wall ? wall : still.next(before - 1)!;
}

function excluded(time: number, spec: ScheduleExclusion, one: SimpleSchedule): boolean {
  if (spec.start !== undefined && time < Date.parse(spec.start)) return false;
  if (spec.end !== undefined && time > Date.parse(spec.end)) return false;
  if ("named" in spec) {
    const { named, ...rest } = spec;
    return CALENDARS.get(named)!.some((text) => excluded(time, { ...rest, calendar: text }, one));
  }
  if ("at" in spec) return time === Date.parse(String(spec.at));
  const own = ("timezone" in one ? one.timezone : undefined) ?? "UTC";
  if ("every" in spec) {
    const { start: _, end: __, ...bare } = spec;
    const zoned = / /.test(spec.every) ? { ...bare, timezone: spec.timezone ?? own } : bare;
    return once(zoned).latest(time) === time;
  }
  const timeZone = spec.timezone ?? own;
  const wall = timeZone === own ? meant(time, one, timeZone) : wallOf(time, timeZone);
  const text = "cron" in spec ? { cron: spec.cron } : { calendar: spec.calendar };
  const latest = once(text).latest(wall);
  if ("cron" in spec || /:/.test(spec.calendar)) return latest === wall;
  return latest === Math.floor(wall / DAY) * DAY;
}

function expected(schedule: Schedule, from: number, to: number): number[] {
  if ("manual" in schedule) return [];
  const members = "any" in schedule ? schedule.any : [schedule];
  const within = (t: number, { start, end }: Schedule) =>
    (start === undefined || t >= Date.parse(start)) && (end === undefined || t <= Date.parse(end));
  const times = members.flatMap((one) => {
    const specs = [...(one.except ?? []), ...("any" in schedule ? (schedule.except ?? []) : [])];
    return walk(one, from, to).filter(
      (t) => within(t, one) && within(t, schedule) && !specs.some((spec) => excluded(t, spec, one)),
    );
  });
  return [...new Set(times)].sort((a, b) => a - b);
}

test("unions, exclusions and bounds equal filtering", () => {
  fc.assert(
    fc.property(schedule, pick(...STARTS), fc.array(fc.nat(SPAN / 60_000)), (one, day, minutes) => {
      const from = Date.parse(`${day}T00:00:00Z`);
      const to = from + SPAN;
      const times = expected(one, from, to);
      const compiled = compileSchedule(one, "", context);
      const found: number[] = [];
      for (let t = compiled.next(from); t !== undefined && t <= to; t = compiled.next(t)) found.push(t);
      const show = (list: number[]) => list.map((t) => new Date(t).toISOString());
      expect(show(found)).toEqual(show(times));
      for (const at of minutes.map((m) => from + m * 60_000 + 1)) {
        const next = times.find((t) => t > at);
        const latest = times.findLast((t) => t <= at);
        if (next !== undefined) expect(compiled.next(at)).toBe(next);
        if (latest !== undefined) expect(compiled.latest(at)).toBe(latest);
        else expect(compiled.latest(at) ?? 0).toBeLessThanOrEqual(from);
      }
    }),
    { numRuns: 80 },
  );
});

test("no time lies between latest and next, and a second compilation gives the same times", () => {
  const time = fc.integer({ min: Date.UTC(2023, 0, 1), max: Date.UTC(2027, 0, 1) });
  fc.assert(
    fc.property(schedule, time, (one, t) => {
      const compiled = compileSchedule(one, "", context);
      // Intervals are counted from 1970. If exclusions remove all times since then, the search of one member may give
      // up before that of another.
      const latestSince = (at: number) => {
        const found = compiled.latest(at);
        return found !== undefined && found >= 0 ? found : undefined;
      };
      // In a union, the search of one member may be too long, while the times of others are found.
      const parts = membersOf(one, { seed: "", context, lenient: false });
      const tooLong = parts.some(
        ({ excluding }) => excluding?.search(t) === GAVE_UP || excluding?.searchBack(t) === GAVE_UP,
      );
      if (tooLong) return;
      const next = compiled.next(t);
      const latest = latestSince(t);
      if (latest !== undefined) {
        expect(latest).toBeLessThanOrEqual(t);
        expect(compiled.next(latest)).toBe(next);
      }
      if (next === undefined) return;
      expect(next).toBeGreaterThan(t);
      expect(latestSince(next - 1)).toBe(latest);
      expect(compiled.latest(next)).toBe(next);
      expect(compileSchedule(one, "", context).next(next)).toBe(compiled.next(next));
    }),
    { numRuns: 500 },
  );
});

describe("a search skips whole excluded months", () => {
  const cases: [what: string, schedule: Schedule, from: string, first: string, then: string][] = [
    [
      "of its own times, on its own clock",
      {
        cron: "*/5 * * * *",
        timezone: "Africa/Cairo",
        dst: { gap: "run-after" },
        except: [{ cron: "*/5 * * 1-6 *" }],
      },
      "2026-01-01T00:00:00Z",
      "2026-06-30T21:00:00Z",
      "2026-06-30T21:05:00Z",
    ],
    [
      "of whole hours, by two clocks",
      {
        every: "5s",
        except: [
          { cron: "* * 0-11 * 1-6 *", timezone: "Asia/Tokyo" },
          { calendar: "*-1..6-* 8..20:*:*", timezone: "Asia/Kolkata" },
        ],
      },
      "2026-01-01T12:00:00Z",
      "2026-06-30T15:30:00Z",
      "2026-06-30T15:30:05Z",
    ],
    [
      "of days, and of the hours of the others",
      {
        cron: "*/10 * * * *",
        timezone: "Europe/Paris",
        except: [
          { calendar: "Sat,Sun" },
          { cron: "* 0-11 * * 1-5" },
          { calendar: "12..23:0/10", end: "2026-06-01T00:00:00Z" },
        ],
      },
      "2026-01-01T00:00:00Z",
      "2026-06-01T10:00:00Z",
      "2026-06-01T10:10:00Z",
    ],
    [
      "by an interval, while the clock suits it",
      { cron: "0 */2 * * *", timezone: "Africa/Cairo", except: [{ every: "1d" }, { every: "2h" }] },
      "2024-11-09T00:00:00Z",
      "2025-04-24T23:00:00Z",
      "2025-04-25T01:00:00Z",
    ],
    [
      "of each second hour, while one clock suits the other",
      {
        every: "1h",
        except: [
          { cron: "*/5 */2 * * *", timezone: "America/New_York" },
          { every: "2h" },
          { calendar: "*-*~1" },
        ],
      },
      "2023-01-01T00:00:00Z",
      "2023-03-12T07:00:00Z",
      "2023-03-12T09:00:00Z",
    ],
    [
      "of an interval of the calendar",
      {
        every: "1 day",
        timezone: "Europe/Paris",
        origin: "2020-01-31T11:00:00Z",
        except: [{ calendar: "*-*-1/2" }, { cron: "0 9-17 * * *", end: "2026-01-01T00:00:00Z" }],
      },
      "2020-02-01T00:00:00Z",
      "2026-01-02T11:00:00Z",
      "2026-01-04T11:00:00Z",
    ],
  ];
  for (const [what, one, from, first, then] of cases) {
    test(what, () => {
      const compiled = compileSchedule(one);
      expect(new Date(compiled.next(Date.parse(from))!).toJSON()).toBe(new Date(first).toJSON());
      expect(compiled.next(Date.parse(first))).toBe(Date.parse(then));
      expect(compiled.latest(Date.parse(then) - 1)).toBe(Date.parse(first));
      expect(compiled.latest(Date.parse(first) - 1) ?? 0).toBeLessThan(Date.parse(from));
      const { never, warnings } = reviewSchedule(one);
      expect([never, warnings.filter(({ code }) => code !== "CLOCK_SKIPS")]).toEqual([undefined, []]);
    });
  }
});

describe("a search gives up after thousands of consecutive excluded times", () => {
  const cairo = { timezone: "Africa/Cairo" };
  const minutes = [{ cron: "*/2 * * * *" }, { cron: "1-59/2 * * * *", ...cairo }];
  const context = { calendars: new Map([["minutes", ["*:0..29", "*:30..59"]]]) };
  const gaveUp = (one: Schedule, from: number) => {
    expect(soon(500, () => compileSchedule(one, "", context).next(from))).toBeUndefined();
    const preview = previewSchedule(one, { from, count: 1, context });
    expect(preview.notes.map(({ code }) => code)).toEqual(["GAVE_UP"]);
  };

  test.each<[string, Schedule, from: string]>([
    [
      "one month of each year, on another clock",
      { cron: "*/5 * * * *", timezone: "Europe/Paris", except: [{ cron: "*/5 * * 8 *", ...cairo }] },
      "2026-07-31T22:00:00Z",
    ],
    [
      "a few weeks to come",
      {
        cron: "*/2 * * * *",
        except: [{ calendar: "*:0/2", ...cairo, start: "2027-02-01T00:00:00Z", end: "2027-03-01T00:00:00Z" }],
      },
      "2027-01-31T23:58:00Z",
    ],
    [
      "minutes of a calendar, from now on",
      { every: "1m", except: [{ named: "minutes", start: "2026-01-01T00:00:00Z" }] },
      "2026-01-01T00:00:00Z",
    ],
  ])("and warns: %s", (_what, one, from) => {
    gaveUp(one, Date.parse(from));
    const { never, warnings } = reviewSchedule(one, context);
    expect(never).toBeUndefined();
    expect(warnings.map(({ code }) => code)).toEqual(["EXCLUDES_TOO_MANY"]);
  });

  test("warns about a member of a union, and finds the times of the others", () => {
    const one: Schedule = { any: [{ every: "1m", except: minutes }, { cron: "0 9 * * *" }] };
    expect(compileSchedule(one).next(Date.UTC(2026, 0, 1))).toBe(Date.UTC(2026, 0, 1, 9));
    expect(reviewSchedule(one).warnings.map(({ code }) => code)).toContain("EXCLUDES_TOO_MANY");
  });

  test("names the reason if no search finds a time", () => {
    const one: Schedule = { cron: "* * * * *", except: [minutes[0]!, { cron: "1-59/2 * * * *" }] };
    gaveUp(one, Date.UTC(2026, 0, 1));
    expect(reviewSchedule(one).never).toBe(
      "its exclusions take each of the 3,334 times that one search passes over.",
    );
  });
});

describe("a search stays bounded if exclusions take all times, or nearly all", () => {
  const paris = { timezone: "Europe/Paris" };
  const base = Date.parse("2026-01-15T10:00:00Z");
  test.each<[Schedule, string | undefined]>([
    [{ cron: "* * * * *", except: [{ cron: "* * * * *" }] }, undefined],
    [{ cron: "* * * * *", ...paris, except: [{ calendar: "*-*-*" }] }, undefined],
    [{ cron: "30 2 * * *", ...paris, except: [{ calendar: "*-*-* 02:30" }] }, undefined],
    [{ cron: "* * * * * *", ...paris, except: [{ calendar: "*-*-* *:*:*" }] }, undefined],
    [{ cron: "* * * * *", ...paris, except: [{ cron: "* * * * *", timezone: "Asia/Kolkata" }] }, undefined],
    [{ every: "1m", except: [{ every: "1m" }] }, undefined],
    [{ every: "1m", except: [{ cron: "* * * * *", ...paris }] }, undefined],
    [{ every: "1 month", except: [{ calendar: "*-*-01" }] }, undefined],
    [{ every: "10s", except: [{ calendar: "2026-*-*" }] }, "2027-01-01T00:00:00.000Z"],
    [{ cron: "* * * * *", ...paris, except: [{ cron: "* * * 1-8 *" }] }, "2026-08-31T22:00:00.000Z"],
    [{ cron: "* * * * *", ...paris, except: [{ calendar: "1970..2150-*-*" }] }, "2150-12-31T23:00:00.000Z"],
    [
      { cron: "*/5 * * * *", ...paris, except: [{ cron: "* 0-20 * * *" }, { cron: "* 21,22 * * *" }] },
      "2026-01-15T22:00:00.000Z",
    ],
    [{ any: Array.from({ length: 32 }, () => ({ every: "1s" })), except: [{ every: "1s" }] }, undefined],
  ])("%j", (one, next) => {
    const compiled = compileSchedule(one);
    const [found] = soon(500, () => [compiled.next(base), compiled.latest(base)]);
    expect(found === undefined ? found : new Date(found).toISOString()).toBe(next);
  });
});

describe("the bounds of a search do not affect sensible schedules", () => {
  const weekly = Array.from({ length: 27 }, (_, i) => ({
    cron: "0 9 * * 1",
    timezone: `Etc/GMT${i < 15 ? `-${14 - i}` : `+${i - 14}`}`,
  }));
  const window = { start: "2026-03-01T00:00:00Z", end: "2026-06-30T23:59:59Z" };
  test.each<[string, Schedule, string, string | undefined, string]>([
    [
      "weekly members in 27 zones, off at the turn of the year",
      { any: weekly, except: [{ calendar: "*-12-24..31" }, { calendar: "*-01-01..06" }] },
      "2026-12-22T12:00:00Z",
      "2027-01-10T19:00:00.000Z",
      "2026-12-21T21:00:00.000Z",
    ],
    [
      "yearly members in 27 zones, off for three years",
      {
        any: weekly.map(({ timezone }) => ({ cron: "0 9 25 12 *", timezone })),
        except: [{ calendar: "Sat,Sun,Mon" }],
      },
      "2032-01-01T00:00:00Z",
      "2035-12-24T19:00:00.000Z",
      "2031-12-25T21:00:00.000Z",
    ],
    [
      "a day a year, off for 25 years",
      { cron: "0 9 25 12 *", except: [{ calendar: "2026..2050-12-25" }] },
      "2026-01-01T00:00:00Z",
      "2051-12-25T09:00:00.000Z",
      "2025-12-25T09:00:00.000Z",
    ],
    [
      "leap days that are Sundays, 40 years apart",
      { cron: "0 0 29 2 *", timezone: "Europe/Paris", except: [{ calendar: "Mon..Sat" }] },
      "2090-01-01T00:00:00Z",
      "2128-02-28T23:00:00.000Z",
      "2088-02-28T23:00:00.000Z",
    ],
    [
      "each second but those of four months",
      { every: "1s", except: [{ every: "1s", ...window }] },
      "2026-04-01T00:00:00Z",
      "2026-07-01T00:00:00.000Z",
      "2026-02-28T23:59:59.000Z",
    ],
    [
      "each minute but those of four months",
      { cron: "* * * * *", timezone: "Europe/Paris", except: [{ every: "1m", ...window }] },
      "2026-04-01T00:00:00Z",
      "2026-07-01T00:00:00.000Z",
      "2026-02-28T23:59:00.000Z",
    ],
    [
      "seconds of a clock but those of four months",
      { calendar: "*:*:*", timezone: "Asia/Tokyo", except: [{ every: "500ms", ...window }] },
      "2026-04-01T00:00:00Z",
      "2026-07-01T00:00:00.000Z",
      "2026-02-28T23:59:59.000Z",
    ],
    [
      "an interval that has only each other time of a clock",
      { cron: "0,30 * * * * *", except: [{ every: "1m", ...window }] },
      "2026-04-01T00:00:00Z",
      "2026-04-01T00:00:30.000Z",
      "2026-03-31T23:59:30.000Z",
    ],
    [
      "an interval of hours, off by minutes that have all of its own",
      { every: "90m", except: [{ calendar: "*-1..6-* *:0/15" }] },
      "2026-01-01T00:00:00Z",
      "2026-07-01T00:00:00.000Z",
      "2025-12-31T22:30:00.000Z",
    ],
    [
      "fixed minutes, off for half of each month on another clock",
      {
        cron: "0-59 0-23 * * *",
        timezone: "Europe/Paris",
        except: [{ cron: "* * 1-15 * *", timezone: "America/New_York" }],
      },
      "2026-04-01T12:00:00Z",
      "2026-04-16T04:00:00.000Z",
      "2026-04-01T03:59:00.000Z",
    ],
    [
      "minutes, off for decades on another clock",
      {
        any: weekly.map((_, minute) => ({ cron: `${minute} * * * *`, timezone: "Europe/Paris" })),
        except: [{ calendar: "1980..2069-*-* *:*", timezone: "America/New_York" }],
      },
      "2026-04-01T00:00:00Z",
      "2070-01-01T05:00:00.000Z",
      "1980-01-01T04:26:00.000Z",
    ],
    [
      "an hour that another clock shows in winter only",
      { cron: "0 9 * * *", except: [{ cron: "0 10 * * *", timezone: "Europe/Paris" }] },
      "2026-01-15T12:00:00Z",
      "2026-03-29T09:00:00.000Z",
      "2025-10-25T09:00:00.000Z",
    ],
    [
      "half a year on another clock, each half of its days by itself",
      {
        cron: "*/5 * * * *",
        timezone: "Europe/Paris",
        except: [
          { cron: "* 0-11 * 1-6 *", timezone: "Asia/Tokyo" },
          { cron: "* 12-23 * 1-6 *", timezone: "Asia/Tokyo" },
        ],
      },
      "2026-03-01T12:00:00Z",
      "2026-06-30T15:00:00.000Z",
      "2025-12-31T14:55:00.000Z",
    ],
    [
      "minutes that another clock shows half an hour later",
      { cron: "0,15 * * * *", except: [{ cron: "0,15,30 * * * *", timezone: "Asia/Kolkata" }] },
      "2026-04-01T12:00:00Z",
      "2026-04-01T12:15:00.000Z",
      "2026-04-01T11:15:00.000Z",
    ],
    [
      "every third second, by an exclusion with fractions",
      { calendar: "*:*:0/10", except: [{ calendar: "*:*:0/7.5" }] },
      "2026-04-01T12:00:00Z",
      "2026-04-01T12:00:10.000Z",
      "2026-04-01T11:59:50.000Z",
    ],
    [
      "the whole ones of half seconds",
      { calendar: "*:*:0/0.5", except: [{ calendar: "*:*:*" }] },
      "2026-04-01T12:00:00Z",
      "2026-04-01T12:00:00.500Z",
      "2026-04-01T11:59:59.500Z",
    ],
    [
      "minutes, beside those half a second later",
      { every: "1m", origin: "2026-01-01T00:00:00.500Z", except: [{ every: "1m" }] },
      "2026-04-01T12:00:00Z",
      "2026-04-01T12:00:00.500Z",
      "2026-04-01T11:59:00.500Z",
    ],
    [
      "minutes, beside those half a minute later",
      { cron: "* * * * *", except: [{ every: "1m", origin: "2026-01-01T00:00:30Z" }] },
      "2026-04-01T12:00:00Z",
      "2026-04-01T12:01:00.000Z",
      "2026-04-01T12:00:00.000Z",
    ],
    [
      "each other half hour, counted from a quarter",
      { every: "30m", origin: "2026-01-01T00:15:00Z", except: [{ cron: "0,15,30 * * * *" }] },
      "2026-04-01T12:30:00Z",
      "2026-04-01T12:45:00.000Z",
      "2026-04-01T11:45:00.000Z",
    ],
    [
      "whole minutes of an interval that is none",
      { every: "90s", except: [{ cron: "* * * * *" }] },
      "2026-04-01T12:00:00Z",
      "2026-04-01T12:01:30.000Z",
      "2026-04-01T11:58:30.000Z",
    ],
    [
      "whole hours of an interval that is none",
      { every: "90m", except: [{ cron: "0 * * * *" }] },
      "2026-04-01T12:00:00Z",
      "2026-04-01T13:30:00.000Z",
      "2026-04-01T10:30:00.000Z",
    ],
    [
      "each fifth midnight, by an interval that is no part of a day",
      { cron: "0 0 * * *", except: [{ every: "5h" }] },
      "2026-01-02T00:00:00Z",
      "2026-01-03T00:00:00.000Z",
      "2026-01-01T00:00:00.000Z",
    ],
    [
      "an interval from its origin on, while the clock suits it",
      {
        cron: "0 */2 * * *",
        timezone: "Africa/Cairo",
        except: [{ every: "2h", origin: "2024-12-10T00:00:00Z" }],
      },
      "2025-02-01T12:00:00Z",
      "2025-04-24T23:00:00.000Z",
      "2024-12-09T22:00:00.000Z",
    ],
    [
      "minutes, but those of a clock that was half a minute off before 1972",
      { cron: "* * * * *", except: [{ cron: "* * * * *", timezone: "Africa/Monrovia" }] },
      "2026-04-01T00:00:00Z",
      undefined,
      "1972-01-07T00:44:00.000Z",
    ],
    [
      "what runs late is taken away by the second on another clock",
      {
        cron: "30 30 2 * * *",
        timezone: "Europe/Paris",
        except: [{ cron: "30 * * * * *", timezone: "Asia/Tokyo" }],
      },
      "2026-03-29T00:59:00Z",
      "2026-03-29T01:00:00.000Z",
      "2025-03-30T01:00:00.000Z",
    ],
    [
      "what runs late runs on the minute",
      {
        cron: "30 30 2 29 3 *",
        timezone: "Europe/Paris",
        except: [{ every: "1m", origin: "2020-01-01T00:00:30Z" }],
      },
      "2026-03-01T00:00:00Z",
      "2026-03-29T01:00:00.000Z",
      "2020-03-29T01:00:00.000Z",
    ],
    [
      "an interval, the half of which is off",
      { every: "30m", except: [{ every: "1h", origin: "2026-01-01T00:00:00Z" }] },
      "2026-04-01T00:00:00Z",
      "2026-04-01T00:30:00.000Z",
      "2026-03-31T23:30:00.000Z",
    ],
    [
      "an interval beside another",
      { every: "30m", except: [{ every: "10m", origin: "2026-01-01T00:05:00Z" }] },
      "2026-04-01T00:00:00Z",
      "2026-04-01T00:30:00.000Z",
      "2026-04-01T00:00:00.000Z",
    ],
    [
      "all of an interval off, from a time on",
      { every: "1h", except: [{ every: "30m", origin: "2026-01-01T00:00:00Z" }], end: window.end },
      "2026-02-01T00:00:00Z",
      undefined,
      "2025-12-31T23:00:00.000Z",
    ],
  ])("%s", (_name, one, at, next, latest) => {
    const compiled = compileSchedule(one);
    const show = (time: number | undefined) => time && new Date(time).toISOString();
    expect(show(compiled.next(Date.parse(at)))).toBe(next);
    expect(show(compiled.latest(Date.parse(at)))).toBe(latest);
    expect(reviewSchedule(one).never).toBeUndefined();
  });

  test("a schedule that was excluded for a lifetime still fires afterwards", () => {
    const christmas: Schedule = { cron: "0 9 25 12 *", timezone: "Europe/Paris" };
    const except = [{ calendar: "*-12-25", end: "2026-06-01T00:00:00Z" }];
    expect(reviewSchedule({ ...christmas, except }).never).toBeUndefined();
    expect(reviewSchedule({ ...christmas, except: [...except, { calendar: "*-12-*" }] }).never).toBeDefined();
  });
});

test("a holiday covers the whole local day, also if the clock changes", () => {
  const one = compileSchedule(
    { cron: "0 */6 * * *", timezone: "Europe/Berlin", except: [{ named: "holidays-de" }] },
    "",
    { calendars: new Map([["holidays-de", ["2024-03-31", "*-12-25"]]]) },
  );
  expect(new Date(one.next(Date.parse("2024-03-30T20:00:00Z"))!).toISOString()).toBe(
    "2024-03-31T22:00:00.000Z",
  );
  expect(new Date(one.latest(Date.parse("2024-03-31T21:59:00Z"))!).toISOString()).toBe(
    "2024-03-30T17:00:00.000Z",
  );
  expect(one.next(Date.parse("2024-12-24T17:00:00Z"))).toBe(Date.parse("2024-12-25T23:00:00Z"));
});

test("an unknown calendar is an error, never an exclusion without effect", () => {
  const one: Schedule = { every: "1h", except: [{ named: "nowhere" }] };
  expect(() => compileSchedule(one)).toThrow(/schedule\.except\[0\]\.named: There is no calendar "nowhere"/);
  expect(() => compileSchedule({ any: [one] }, "", context)).toThrow(
    /schedule\.any\[0\]\.except\[0\]\.named/,
  );
});

test("an exclusion follows its schedule through a clock gap and an overlap", () => {
  // Excludes Sundays, including the Sunday whose 02:30 runs at 03:00.
  const off = compileSchedule({
    cron: "30 2 * * *",
    timezone: "Europe/Paris",
    except: [{ cron: "30 2 * * 0" }],
  });
  expect(off.next(Date.parse("2024-03-30T12:00:00Z"))).toBe(Date.parse("2024-04-01T00:30:00Z"));
  // Excludes 02:30; 03:00 of that Sunday stays.
  const half = compileSchedule({
    cron: "*/30 * * * *",
    timezone: "Europe/Paris",
    except: [{ cron: "30 2 * * *" }],
  });
  expect(half.next(Date.parse("2024-03-31T00:30:00Z"))).toBe(Date.parse("2024-03-31T01:00:00Z"));
  // Both passes of 02:30.
  const around = [];
  for (let t = half.next(Date.parse("2024-10-26T23:45:00Z"))!; around.length < 4; t = half.next(t)!) {
    around.push((t - Date.parse("2024-10-27T00:00:00Z")) / HOUR);
  }
  expect(around).toEqual([0, 1, 2, 2.5]);
});

test("a search backwards finds the occurrences that a gap delays to its end", () => {
  // 02:30 runs at 03:00 on this day; the exclusion removes 03:30 only.
  const hour = compileSchedule({
    cron: "30 2,3 * * *",
    timezone: "Europe/Paris",
    except: [{ cron: "* 3 * * *" }],
  });
  expect(hour.next(Date.parse("2024-03-30T12:00:00Z"))).toBe(Date.parse("2024-03-31T01:00:00Z"));
  expect(hour.latest(Date.parse("2024-03-31T05:00:00Z"))).toBe(Date.parse("2024-03-31T01:00:00Z"));
  // Apia had no 30 December 2011: its times run at the first instant of the 31st, which is excluded itself.
  const day = compileSchedule({
    cron: "0 9 * * *",
    timezone: "Pacific/Apia",
    dst: { gap: "run-after" },
    except: [{ calendar: "2011-12-31" }],
  });
  expect(day.next(Date.parse("2011-12-29T20:00:00Z"))).toBe(Date.parse("2011-12-30T10:00:00Z"));
  expect(day.latest(Date.parse("2011-12-31T05:00:00Z"))).toBe(Date.parse("2011-12-30T10:00:00Z"));
});
