import { describe, expect, test } from "vitest";
import { isCarillonError } from "../../src/errors.js";
import { nearest } from "../../src/nearest.js";
import {
  calendarZone,
  canonicalSchedule,
  compileSchedule,
  describeSchedule,
  fixedInterval,
  lintSchedule,
  reviewSchedule,
  type Schedule,
  type ScheduleInput,
  scheduleSchema,
  scheduleZone,
} from "../../src/schedule/index.js";
import { knownZone } from "../../src/schedule/zone/names.js";
import { WINDOWS } from "../../src/schedule/zone/windows.js";
import { soon } from "./soon.js";

const utc = (text: string) => Date.parse(text);

/** The first dates after a base. */
function dates(schedule: Schedule, after: string, count: number): string[] {
  const compiled = compileSchedule(schedule);
  const found: string[] = [];
  for (let t = compiled.next(utc(after)); t !== undefined && found.length < count; t = compiled.next(t)) {
    found.push(new Date(t).toISOString().slice(0, 10));
  }
  return found;
}

describe("cron's day extensions", () => {
  test.each([
    ["0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31"]],
    ["0 0 LW * *", ["2026-01-30", "2026-02-27", "2026-03-31"]],
    ["0 0 15W * *", ["2026-01-15", "2026-02-16", "2026-03-16"]],
    // The 1st is a Sunday in February and March: the nearest workday stays within the month.
    ["0 0 1W 2,3,8 *", ["2026-02-02", "2026-03-02", "2026-08-03"]],
    ["0 0 31W * *", ["2026-01-30", "2026-03-31", "2026-05-29"]],
    ["0 0 * * 5#5", ["2026-01-30", "2026-05-29", "2026-07-31"]],
    ["0 0 * * 1#1,FRI#2", ["2026-01-05", "2026-01-09", "2026-02-02"]],
    ["0 0 * * 5L", ["2026-01-30", "2026-02-27", "2026-03-27"]],
    ["0 0 1,L * *", ["2026-01-31", "2026-02-01", "2026-02-28"]],
    ["0 0 13 * 5", ["2026-01-02", "2026-01-09", "2026-01-13"]],
  ])("%s", (cron, expected) => {
    expect(dates({ cron }, "2026-01-01T00:00:00Z", 3)).toEqual(expected);
  });
});

describe("H", () => {
  // These values may never change, because stored expressions rely on them.
  test.each([
    ["H H * * *", "t", "55 4 * * *"],
    ["H/15 * * * *", "t", "10-59/15 * * * *"],
    ["H H(0-5) H * *", "nightly-report", "22 0 1 * *"],
  ])("%s for %s is %s", (cron, seed, canonical) => {
    expect(canonicalSchedule({ cron }, seed)).toBe(canonical);
  });

  test("spreads over its range", () => {
    const minutes = new Set<string>();
    for (let i = 0; i < 600; i++)
      minutes.add(canonicalSchedule({ cron: "H 0 * * *" }, `task-${i}`).split(" ")[0]!);
    expect(minutes.size).toBeGreaterThan(55);
  });

  test.each(["H(5-3) * * * *", "H(0-60) * * * *", "H/0 * * * *", "H/61 * * * *"])("%s is refused", (cron) => {
    expect(() => compileSchedule({ cron })).toThrow(/minute field|step/);
  });
});

describe("every", () => {
  const schedule = compileSchedule({ every: "10m", origin: "2026-01-01T00:05:00Z" });

  test("counts from its origin, on a fixed grid", () => {
    expect(schedule.next(utc("2026-01-01T00:05:00Z"))).toBe(utc("2026-01-01T00:15:00Z"));
    expect(schedule.next(utc("2026-01-01T00:14:59.999Z"))).toBe(utc("2026-01-01T00:15:00Z"));
    expect(schedule.latest(utc("2026-01-01T00:24:59Z"))).toBe(utc("2026-01-01T00:15:00Z"));
  });

  test("has nothing before its origin", () => {
    expect(schedule.next(0)).toBe(utc("2026-01-01T00:05:00Z"));
    expect(schedule.latest(utc("2026-01-01T00:04:59Z"))).toBeUndefined();
  });

  test("counts from the epoch by default", () => {
    expect(compileSchedule({ every: "7s" }).next(0)).toBe(7_000);
    expect(compileSchedule({ every: "7s" }).next(-1)).toBe(0);
  });
});

test("at fires once", () => {
  const schedule = compileSchedule({ at: "2026-01-01T01:00:00+01:00" });
  const time = utc("2026-01-01T00:00:00Z");
  expect(schedule.next(time - 1)).toBe(time);
  expect(schedule.next(time)).toBeUndefined();
  expect(schedule.latest(time)).toBe(time);
  expect(schedule.latest(time - 1)).toBeUndefined();
});

test("fractions of a second are supported", () => {
  const compiled = compileSchedule({ calendar: "*:*:1.125..2.125" });
  expect(compiled.next(0)).toBe(1_125);
  expect(compiled.next(1_125)).toBe(2_125);
  expect(compiled.next(2_125)).toBe(61_125);
  expect(compiled.latest(2_124)).toBe(1_125);
  expect(compiled.latest(50_000)).toBe(2_125);
  expect(() => compileSchedule({ calendar: "*:*:0/0.0001" })).toThrow("finer than milliseconds");
});

test.each([
  // Normalised as `systemd-analyze calendar` does.
  ["*:*:0/1", "*-*-* *:*:*"],
  ["*:*:3,0/1,0", "*-*-* *:*:*"],
  ["*:*:0,0..59,0/1,0/3", "*-*-* *:*:*"],
  ["*:*:0,0..59", "*-*-* *:*:00,00..59"],
  ["*:0/1,3,0", "*-*-* *:00,00/1,03:00"],
  // systemd writes `*` for these too, although that loses a time.
  ["*:*:0/1,0.5", "*-*-* *:*:00/1,00.500000"],
  ["*:*:0/0.5,0/1", "*-*-* *:*:00/0.500000,00/1"],
])("seconds of %s are written as %s, which means the same", (calendar, canonical) => {
  expect(canonicalSchedule({ calendar })).toBe(canonical);
  const [one, again] = [calendar, canonical].map((text) => compileSchedule({ calendar: text }));
  for (let t: number | undefined = 0; t !== undefined && t < 4_000; t = one!.next(t)) {
    expect(again!.next(t)).toBe(one!.next(t));
  }
});

test.each([
  // Paris, 2024-10-27: 03:00+02:00 becomes 02:00+01:00 at 01:00Z.
  ["hourly", ["00:00", "01:00", "02:00"]],
  ["00..23:30", ["00:30", "01:30"]],
  ["*:0/30", ["00:00", "00:30", "01:00", "01:30", "02:00"]],
  ["2:0/1", undefined],
  ["02:30", ["00:30"]],
  ["1..3:0/30", ["00:00", "00:30", "01:00", "01:30", "02:00"]],
])("calendar event %s in an hour that comes twice", (calendar, expected) => {
  const compiled = compileSchedule({ calendar, timezone: "Europe/Paris" });
  const [from, to] = [utc("2024-10-26T23:59:00Z"), utc("2024-10-27T02:00:00Z")];
  const times: string[] = [];
  for (let time = compiled.next(from); time !== undefined && time <= to; time = compiled.next(time))
    times.push(new Date(time).toISOString().slice(11, 16));
  if (expected === undefined) expect(times).toHaveLength(120);
  else expect(times).toEqual(expected);
});

test.each([
  ["03:00 Europe/Berlin", "Europe/Berlin"],
  ["Mon *-*-* 03:00 utc", "UTC"],
  ["@1893456000 Asia/Tokyo", "UTC"],
  ["Mon *-*-* 03:00", undefined],
  ["daily", undefined],
  // A zone that only Intl accepts; no event; too long.
  ["03:00 PST", undefined],
  ["whenever Europe/Berlin", undefined],
  [`${" ".repeat(600)}daily Europe/Berlin`, undefined],
])("the zone in %j is %s", (calendar, zone) => {
  expect(calendarZone(calendar)).toBe(zone);
});

test.each<[Schedule, string | undefined]>([
  [{ cron: "0 6 * * *" }, "UTC"],
  [{ cron: "0 6 * * *", timezone: "Asia/Kolkata" }, "Asia/Kolkata"],
  [{ calendar: "06:00 Europe/Berlin", timezone: "Asia/Kolkata" }, "Europe/Berlin"],
  [{ calendar: "06:00" }, "UTC"],
  [{ every: "5m" }, undefined],
  [{ every: "1 month", timezone: "Europe/Berlin" }, "Europe/Berlin"],
  [{ any: [{ cron: "0 6 * * *" }, { calendar: "09:00" }] }, "UTC"],
  [{ any: [{ cron: "0 6 * * *" }, { calendar: "09:00 Asia/Kolkata" }] }, undefined],
  [{ manual: true }, undefined],
])("the times of %j are on the clock of %s", (schedule, zone) => {
  expect(scheduleZone(schedule)).toBe(zone);
});

describe("a schedule that never fires", () => {
  test.each<[Schedule, string]>([
    [{ cron: "0 0 31 2 *" }, "no such date ever exists."],
    [{ every: "1h", except: [{ every: "1h" }] }, "its exclusions take every time."],
    [
      { any: [{ cron: "0 9 25 12 *" }], except: [{ calendar: "*-12-25" }] },
      "its exclusions take every time.",
    ],
    [{ at: 0, start: "2026-01-01T00:00:00Z" }, "no time lies between its start and its end."],
  ])("says why: %j", (schedule, why) => {
    expect(reviewSchedule(schedule).never).toBe(why);
    expect(lintSchedule(schedule)[0]).toEqual({
      code: "NEVER_FIRES",
      message: `This schedule never fires: ${why}`,
      remedy: "Check its dates, its start and end, and its exclusions.",
    });
  });

  test.each<[Schedule, boolean]>([
    [{ cron: "0 0 31 2 *" }, true],
    [{ cron: "0 0 30 2 *", timezone: "Europe/Paris" }, true],
    [{ cron: "0 0 31W 4 *" }, true],
    [{ cron: "0 0 29 2 *" }, false],
    [{ cron: "0 0 31 2 1" }, false],
    [{ calendar: "*-02-30" }, true],
    [{ calendar: "Mon 2024-01-02" }, true],
    [{ calendar: "2017-09-24 02:30 Pacific/Auckland" }, true],
    [{ calendar: "2003-03-05" }, false],
    [{ at: 0 }, false],
    [{ every: "1s" }, false],
    // More consecutive years than one search covers.
    [{ every: "1 year", except: [{ calendar: "1970..2025-01-01" }] }, false],
    [{ every: "1 year", except: [{ every: "24h" }] }, true],
  ])("%j: %s", (schedule, expected) => {
    expect(reviewSchedule(schedule).never !== undefined).toBe(expected);
  });
});

test.each<[Schedule, string]>([
  [{ cron: "* * * * *" }, "every minute, every day (UTC)"],
  [{ cron: "*/15 8-17 * * 1-5" }, "every 15 minutes during hours 8 to 17, on Monday to Friday (UTC)"],
  [{ cron: "0 9 13 * 5" }, "at 09:00, on the 13th of the month and also on Friday (UTC)"],
  [{ cron: "17 * * * *" }, "at minute 17 of every hour, every day (UTC)"],
  [{ cron: "5-20/5 * * * *" }, "at minutes 5, 10, 15 and 20 of every hour, every day (UTC)"],
  [{ cron: "5,6,10-12 * * * *" }, "at minutes 5, 6 and 10 to 12 of every hour, every day (UTC)"],
  [{ cron: "0 1-6 * * *" }, "at 01:00, 02:00, 03:00, 04:00, 05:00 and 06:00, every day (UTC)"],
  [{ cron: "0 0-8 * * *" }, "on the hour, at hours 0 to 8, every day (UTC)"],
  [{ cron: "*/5 * * * * *" }, "every 5 seconds, every day (UTC)"],
  [{ cron: "* 0 * * * *" }, "every second, at minute 0 of every hour, every day (UTC)"],
  [{ cron: "*/5 0 9 * * *" }, "every 5 seconds, at minute 0 of hour 9, every day (UTC)"],
  [{ cron: "30 0 0-8 * * *" }, "at second 30, at minute 0 of hours 0 to 8, every day (UTC)"],
  [
    { calendar: "0/2:00:00.5" },
    "at fractions of a second, at minute 0 of hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 22, every day (UTC)",
  ],
  [
    { cron: "0 9,17 L 1,7 *", timezone: "Asia/Tokyo" },
    "at 09:00 and 17:00, on the last day of the month, in January and July (Asia/Tokyo)",
  ],
  [
    { cron: "0 9 * * 5#2,1L" },
    "at 09:00, on the 2nd Friday of the month and the last Monday of the month (UTC)",
  ],
  // A union in which one side allows any day.
  [{ cron: "0 9 1-31 * 1" }, "at 09:00, every day (UTC)"],
  [{ cron: "0 9 15W * *" }, "at 09:00, on the weekday nearest to the 15th of the month (UTC)"],
  [{ cron: "0 9 LW * *" }, "at 09:00, on the last weekday (Monday to Friday) of the month (UTC)"],
  [{ cron: "0 9 * * 5#5" }, "at 09:00, on the 5th Friday of the month (UTC)"],
  [
    { calendar: "*-*~01,02 09:00" },
    "at 09:00, on the last day and the 2nd day from the end of the month (UTC)",
  ],
  [{ calendar: "Fri *-*-13" }, "at 00:00, on Friday, only on the 13th of the month (UTC)"],
  [
    { calendar: "2025..2027-01-01 12:00:30" },
    "at 12:00:30, on the 1st of the month, in January, in 2025 to 2027 (UTC)",
  ],
  [{ every: "90s" }, "every 1m30s, counted from the Unix epoch"],
  [{ at: 0 }, "once, at 1970-01-01T00:00:00Z"],
])("%j reads: %s", (schedule, expected) => {
  expect(describeSchedule(schedule)).toBe(expected);
});

test.each<[Schedule, string[]]>([
  [{ cron: "0 9 * * 1-5" }, []],
  [{ cron: "* * * * * *" }, ["EACH_SECOND"]],
  [{ cron: "0 0 13 * 5" }, ["DAY_UNION"]],
  [{ cron: "0 0 13 * 0-6" }, ["DAY_UNION"]],
  [{ cron: "0 0 1-31 * 0-6" }, []],
  [{ cron: "* 2 * * *" }, ["EACH_MINUTE_OF_HOUR"]],
  [{ cron: "0 0 30 2 *" }, ["NEVER_FIRES"]],
  [{ cron: "0 * 2 * * *" }, ["EACH_MINUTE_OF_HOUR"]],
  ...["*/90 * * * *", "*/120 * * * *", "*/180 9 * * *", "0 */90 * * * *", "0 */25 * * *", "0/90 * * * *"].map(
    (cron): [Schedule, string[]] => [{ cron }, ["STEP_ONE_VALUE"]],
  ),
  [{ cron: "0 0 */45 * *" }, ["STEP_ONE_VALUE"]],
  [{ cron: "0 0 1 */13 *" }, ["STEP_ONE_VALUE"]],
  [{ cron: "*/45 * * * *" }, ["STEP_UNEVEN"]],
  [{ cron: "0 */10 * * *" }, ["STEP_UNEVEN"]],
  [{ cron: "0 0 */15 * *" }, ["STEP_UNEVEN"]],
  [{ cron: "0 0 */14 * *" }, ["STEP_UNEVEN"]],
  // On purpose, or with the same result as what was meant.
  ...[
    "0 16-23/24 * * *",
    "0 */24 * * *",
    "*/60 * * * *",
    "30/60 * * * *",
    "0 0 1 */12 *",
    "*/7 * * * *",
    "*/45 9 * * *",
    "0 */10 * * 1",
    "*/15 * * * *",
    "10/20 * * * *",
    "0 0 */2 * *",
    "0 0 * * */2",
    "0,*/90 * * * *",
  ].map((cron): [Schedule, string[]] => [{ cron }, []]),
  [{ cron: "0 0 9 ? * 2-6" }, ["QUARTZ_WEEKDAYS"]],
  [{ cron: "0 0 9 ? * 6#3" }, ["QUARTZ_WEEKDAYS"]],
  [{ cron: "0 0 9 ? * MON-FRI" }, []],
  [{ cron: "0 9 ? * 0,6" }, []],
  [{ cron: "0 0 12 1/5 * ?" }, []],
  ...["EST", "CET", "HST", "Etc/GMT+2"].map((timezone): [Schedule, string[]] => [
    { cron: "0 9 * * *", timezone },
    ["ZONE_ABBREVIATION"],
  ]),
  [{ calendar: "09:00 MST" }, ["ZONE_ABBREVIATION"]],
  [{ every: "1d", timezone: "Etc/GMT-3" }, ["ZONE_ABBREVIATION"]],
  [{ any: [{ cron: "0 9 * * *", timezone: "EET" }] }, ["ZONE_ABBREVIATION"]],
  [{ every: "1h", except: [{ calendar: "Sun", timezone: "WET" }] }, ["ZONE_ABBREVIATION"]],
  [{ cron: "0 9 * * *", timezone: "Etc/GMT" }, []],
  [{ calendar: "02:30", timezone: "Europe/Berlin" }, ["CLOCK_SKIPS"]],
  [{ calendar: "02:30 Europe/Berlin" }, ["CLOCK_SKIPS"]],
  [{ calendar: "02:30", timezone: "Europe/Berlin", dst: { gap: "skip" } }, []],
  [{ calendar: "02:30", timezone: "Europe/Berlin", dst: { gap: "run-after" } }, []],
  [{ calendar: "*:0/15", timezone: "Europe/Berlin" }, ["SYSTEMD_DIFFERS"]],
  [{ calendar: "hourly Australia/Lord_Howe" }, []],
  [{ calendar: "*:0/30 Australia/Lord_Howe" }, ["SYSTEMD_DIFFERS"]],
  [{ calendar: "02:*", timezone: "Europe/Berlin" }, ["SYSTEMD_DIFFERS", "CLOCK_SKIPS"]],
  [{ any: [{ calendar: "hourly", timezone: "Europe/Berlin" }] }, ["SYSTEMD_DIFFERS"]],
  // Never in an hour that comes twice, or as systemd does.
  [{ calendar: "hourly" }, []],
  [{ calendar: "hourly", timezone: "Asia/Tokyo" }, []],
  [{ calendar: "Mon..Fri *:0/15", timezone: "Europe/Berlin" }, []],
  [{ calendar: "minutely", timezone: "Europe/Berlin", dst: { overlap: "first" } }, []],
  [{ calendar: "00..06:30", timezone: "Europe/Berlin" }, []],
  [{ cron: "*/30 2 * * *", timezone: "Europe/Berlin" }, ["DIALECT_DIFFERS", "CLOCK_SKIPS"]],
  [{ calendar: "Mon 02:30", timezone: "Europe/Berlin" }, []],
  [{ cron: "30 2 * * *", timezone: "America/New_York" }, ["DIALECT_DIFFERS"]],
  [{ calendar: "daily UTC", timezone: "Europe/Paris" }, ["ZONE_IGNORED"]],
  [{ calendar: "daily Europe/Paris", timezone: "Europe/Paris" }, []],
  [{ calendar: "*:*:*" }, ["EACH_SECOND"]],
  [{ calendar: "*:*:0.5/0.5" }, ["EACH_SECOND"]],
  [{ calendar: "*:*:0.5..59.5" }, ["EACH_SECOND"]],
  [{ calendar: "*:*:0.5" }, []],
  [{ calendar: "09:00:00.5/10" }, []],
  [{ every: "1s" }, ["EACH_SECOND"]],
  [{ every: "2s" }, []],
])("%j is warned about with %j", (schedule, codes) => {
  const warnings = lintSchedule(schedule);
  expect(warnings.map(({ code }) => code)).toEqual(codes);
  for (const { remedy } of warnings) expect(remedy).toMatch(/^[A-Z].*\.$/);
});

describe("a search stays bounded", () => {
  test("for a schedule that never matches", () => {
    for (const schedule of [{ cron: "0 0 30 2 *", timezone: "Europe/Paris" }, { calendar: "*-02-30" }]) {
      const compiled = compileSchedule(schedule);
      for (const base of [0, utc("2026-01-01T00:00:00Z"), utc("9999-12-31T00:00:00Z"), 8.64e15, -8.64e15]) {
        soon(50, () => expect([compiled.next(base), compiled.latest(base)]).toEqual([undefined, undefined]));
      }
    }
  });

  test("at the ends of the time range", () => {
    const compiled = compileSchedule({ cron: "0 0 29 2 *", timezone: "America/New_York" });
    soon(200, () => {
      expect(compiled.next(utc("9999-01-01T00:00:00Z"))).toBeUndefined();
      expect(compiled.next(Number.POSITIVE_INFINITY)).toBeUndefined();
      expect(compiled.next(Number.NaN)).toBeUndefined();
      expect(compiled.latest(Number.NaN)).toBeUndefined();
      expect(compiled.latest(Number.NEGATIVE_INFINITY)).toBeUndefined();
      expect(compiled.latest(Number.POSITIVE_INFINITY)).toBe(utc("9996-02-29T05:00:00Z"));
    });
  });

  test("in the input that an error message repeats", () => {
    try {
      compileSchedule({ cron: `${"9".repeat(500)} * * * *` });
    } catch (error) {
      expect(isCarillonError(error, "INVALID_SCHEDULE")).toBe(true);
      expect((error as Error).message.length).toBeLessThan(300);
    }
    expect.assertions(2);
  });
});

describe("fixedInterval", () => {
  test.each<[ScheduleInput, number | undefined]>([
    [{ every: "90s" }, 90_000],
    [
      { every: "1d", origin: "2026-01-01T00:00:00Z", start: "2026-01-02T00:00:00Z", jitter: "1h" },
      86_400_000,
    ],
    [{ every: "1d", timezone: "Europe/Berlin" }, undefined],
    [{ every: "1 month" }, undefined],
    [{ every: "90s", anchor: "finish" }, undefined],
    [{ every: "90s", except: [{ cron: "* 12 * * *" }] }, undefined],
    [{ cron: "* * * * *" }, undefined],
    [{ at: "2026-01-01T00:00:00Z" }, undefined],
    [{ any: [{ every: "1m" }, { every: "2m" }] }, undefined],
  ])("of %j is %j", (input, interval) => {
    expect(fixedInterval(scheduleSchema.parse(input) as Schedule)).toBe(interval);
  });
});

test.each<[Schedule, string]>([
  [{ cron: "*/90 * * * *" }, 'every: "90m"'],
  [{ cron: "0 */90 * * * *" }, 'every: "90m"'],
  [{ cron: "0 0 9 ? * 2-6" }, "MON-FRI"],
  [{ cron: "0 9 * * *", timezone: "EST" }, "America/New_York"],
  [{ cron: "0 9 * * *", timezone: "Etc/GMT+2" }, "Etc/GMT-2"],
])("the warning about %j leads to %s", (schedule, remedy) => {
  expect(lintSchedule(schedule)[0]?.remedy).toContain(remedy);
});

test.each([
  ["asia/kolkata", "Asia/Kolkata"],
  ["europe/kyiv", "Europe/Kyiv"],
  ["asia/ho_chi_minh", "Asia/Ho_Chi_Minh"],
  ["europe/paris", "Europe/Paris"],
  ["america/port_of_spain", "America/Port_of_Spain"],
  ["Europe/Berlin ", "Europe/Berlin"],
  ["new york", "America/New_York"],
  ["Eastern Standard Time", "America/New_York"],
  ["W. Europe Standard Time", "Europe/Berlin"],
  ["Pacific Standard Time (Mexico)", "America/Tijuana"],
])("the zone %j leads to %s", (timezone, near) => {
  expect(() => compileSchedule({ cron: "0 9 * * *", timezone })).toThrow(`Did you mean ${near}?`);
});

test.each<[Schedule, string | RegExp]>([
  [{ calendar: "15min" }, 'Use { every: "15m" } instead.'],
  [{ cron: "15 minutes" }, 'Use { every: "15m" } instead.'],
  [{ cron: "rate(1 hour)" }, 'AWS. Use { every: "1h" }'],
  [{ cron: "rate(1 fortnight)" }, 'AWS. Use { every: "5m" }'],
  [{ cron: "at(2026-11-20T13:00:00)" }, '{ at: "2026-11-20T13:00:00Z" }'],
  [{ cron: "RRULE:FREQ=WEEKLY;BYDAY=MO" }, "docs/moving/words.md"],
  [{ cron: "FREQ=DAILY" }, "RRULE"],
  [{ cron: "0 18 * * * America/New_York" }, 'Use timezone: "America/New_York"'],
  [{ cron: "0 1 * * * ? UTC" }, 'Use timezone: "UTC"'],
  [{ cron: "@every_minute" }, 'Use { cron: "* * * * *" }'],
  [{ cron: "0 0 L-3 * *" }, "*-*~04"],
  [{ cron: "cron(0 10 * * ? *)" }, "AWS"],
  [{ cron: "0 0 9 * * 1 2026" }, "year"],
  [{ cron: "0 9 * *\u00a01-5" }, "\\u00a0"],
])("%j is refused with %s", (schedule, text) => {
  expect(() => compileSchedule(schedule)).toThrow(text);
});

test("line breaks around an expression are left out, as spaces are", () => {
  expect(compileSchedule({ cron: "0 9 * * *\r\n" }).next(0)).toBe(9 * 3_600_000);
  expect(scheduleSchema.parse({ calendar: "09:00\r\n" })).toEqual({ calendar: "09:00" });
  expect(() => compileSchedule({ cron: "0 9\n* * *" })).toThrow();
});

test("each zone of Windows is one of IANA", () => {
  const zones = WINDOWS.split(";").map((entry) => entry.trim().split(" ")[0]!);
  expect(zones.length).toBeGreaterThan(130);
  expect(zones.filter((zone) => knownZone(zone) === undefined)).toEqual([]);
});

test.each([
  ["retry_period", ["retry", "queue"], "retry"],
  ["syntax", ["id", "schedule", "payload"], "schedule"],
  ["value", ["cron", "every"], "cron"],
  ["max_runtime", ["timeLimit", "type"], "timeLimit"],
  ["initial_start", ["start", "end"], "start"],
  ["schedule_interval", ["cron", "every"], "every"],
  ["syntax", ["cron", "every"], "cron"],
])("the name %s of another system leads to its own", (name, known, near) => {
  expect(nearest(name, known)).toBe(near);
});
