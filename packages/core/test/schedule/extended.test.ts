import { describe, expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import {
  calendarsOf,
  canonicalSchedule,
  checkCalendar,
  compileSchedule,
  describeSchedule,
  jitterOf,
  lintSchedule,
  previewSchedule,
  reviewSchedule,
  type Schedule,
  usesSeed,
} from "../../src/schedule/index.js";

const utc = (text: string) => Date.parse(text);
const iso = (time: number | undefined) => (time === undefined ? undefined : new Date(time).toISOString());

function times(schedule: Schedule, after: string, count: number): Array<string | undefined> {
  const compiled = compileSchedule(schedule);
  const found: Array<string | undefined> = [];
  for (let t = compiled.next(utc(after)); found.length < count; t = compiled.next(t)) {
    found.push(iso(t)?.slice(0, 16));
    if (t === undefined) break;
  }
  return found;
}

test("start and end are nominal times, both inclusive", () => {
  const schedule: Schedule = { every: "1h", start: "2026-01-01T10:00:00Z", end: "2026-01-01T12:00:00Z" };
  expect(times(schedule, "2025-01-01T00:00:00Z", 9)).toEqual([
    "2026-01-01T10:00",
    "2026-01-01T11:00",
    "2026-01-01T12:00",
    undefined,
  ]);
  const compiled = compileSchedule(schedule);
  expect(iso(compiled.latest(utc("2027-01-01T00:00:00Z")))).toBe("2026-01-01T12:00:00.000Z");
  expect(compiled.latest(utc("2026-01-01T09:59:59Z"))).toBeUndefined();
  expect(compiled.next(Number.NaN)).toBeUndefined();
  expect(reviewSchedule({ at: "2026-01-01T00:00:00Z", start: "2026-01-02T00:00:00Z" }).never).toBeDefined();
});

describe("intervals of the calendar", () => {
  test.each<[Schedule, string, string[]]>([
    [
      { every: "1 month", origin: "2024-01-31T09:00:00Z" },
      "2024-01-01T00:00:00Z",
      ["2024-01-31T09:00", "2024-02-29T09:00", "2024-03-31T09:00", "2024-04-30T09:00", "2024-05-31T09:00"],
    ],
    [
      { every: "P1Y", origin: "2024-02-29T00:00:00Z" },
      "2024-02-29T00:00:00Z",
      ["2025-02-28T00:00", "2026-02-28T00:00", "2027-02-28T00:00", "2028-02-29T00:00"],
    ],
    // 09:00 in Paris, winter and summer; the calendar's day has 23 h.
    [
      { every: "1 week", origin: "2024-03-20T08:00:00Z", timezone: "Europe/Paris" },
      "2024-03-20T08:00:00Z",
      ["2024-03-27T08:00", "2024-04-03T07:00", "2024-04-10T07:00"],
    ],
    [
      { every: "P1D", origin: "2024-03-29T01:30:00Z", timezone: "Europe/Paris" },
      "2024-03-29T01:30:00Z",
      ["2024-03-30T01:30", "2024-03-31T01:00", "2024-04-01T00:30"],
    ],
    [
      { every: "1 day", origin: "2024-10-26T00:30:00Z", timezone: "Europe/Paris" },
      "2024-10-26T00:30:00Z",
      ["2024-10-27T00:30", "2024-10-28T01:30"],
    ],
    [
      { every: "1 month", timezone: "Europe/Paris" },
      "2024-03-15T00:00:00Z",
      ["2024-03-31T22:00", "2024-04-30T22:00"],
    ],
    // Apia had no 30 December 2011.
    [
      { every: "1 day", origin: "2011-12-28T19:00:00Z", timezone: "Pacific/Apia" },
      "2011-12-28T19:00:00Z",
      ["2011-12-29T19:00", "2011-12-30T10:00", "2011-12-30T19:00"],
    ],
  ])("%j", (schedule, after, expected) => {
    expect(times(schedule, after, expected.length)).toEqual(expected);
  });

  test("an origin in the second pass of an hour is the first occurrence", () => {
    const origin = "2024-10-27T01:30:00Z";
    const daily = compileSchedule({ every: "1 day", origin, timezone: "Europe/Paris" });
    expect(iso(daily.next(0))).toBe("2024-10-27T01:30:00.000Z");
    expect(iso(daily.latest(utc("2024-10-27T12:00:00Z")))).toBe("2024-10-27T01:30:00.000Z");
    expect(daily.latest(utc("2024-10-27T01:00:00Z"))).toBeUndefined();
  });

  test("next and latest agree with counting from the origin", () => {
    const span = { min: utc("1990-01-01T00:00:00Z"), max: utc("2035-01-01T00:00:00Z") };
    fc.assert(
      fc.property(
        fc.constantFrom("1 month", "3 months", "1 year", "2 weeks", "1 day", "P5M"),
        fc.constantFrom("UTC", "Europe/Paris", "Australia/Lord_Howe", "America/New_York"),
        fc.integer(span),
        fc.integer(span),
        (every, timezone, origin, t) => {
          const schedule = compileSchedule({ every, timezone, origin: new Date(origin).toISOString() });
          const next = schedule.next(t)!;
          const latest = schedule.latest(t);
          expect(next).toBeGreaterThan(t);
          expect(schedule.latest(next)).toBe(next);
          expect(schedule.latest(next - 1)).toBe(latest);
          if (latest === undefined) expect(next).toBe(origin);
          else expect(schedule.next(latest)).toBe(next);
          const days = { "1 month": 31, "3 months": 92, "1 year": 366, "2 weeks": 14, "1 day": 1, P5M: 153 };
          if (latest !== undefined) {
            expect(next - latest).toBeLessThanOrEqual((days[every as "P5M"] + 1 / 12) * 86_400_000);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test.each([
    ["0 months", "INVALID_DURATION"],
    ["121 months", "INVALID_DURATION"],
    ["1  month", "INVALID_DURATION"],
    ["1.5 months", "INVALID_DURATION"],
    ["-1 month", "INVALID_DURATION"],
    ["month", "INVALID_DURATION"],
  ])("%s is refused", (every, code) => {
    expect(() => compileSchedule({ every })).toThrowError(expect.objectContaining({ code }));
  });
});

describe("jitter", () => {
  test("is stable, differs by task and time, and stays below its bound", () => {
    // These values may never change, because stored tasks rely on them.
    expect(jitterOf("10m", "t", 1_700_000_000_000, 1_700_003_600_000)).toBe(258_666);
    expect(jitterOf("10%", "t", 1_700_000_000_000, 1_700_003_600_000)).toBe(155_199);
    fc.assert(
      fc.property(
        fc.string(),
        fc.nat(2 ** 40),
        fc.integer({ min: 1, max: 10_000_000 }),
        (seed, nominal, gap) => {
          for (const jitter of ["1ms", "30s", "1h", "0.5%", "10%", "100%"]) {
            const late = jitterOf(jitter, seed, nominal, nominal + gap);
            expect(Number.isInteger(late) && late >= 0 && late < gap).toBe(true);
            expect(late).toBe(jitterOf(jitter, seed, nominal, nominal + gap));
          }
        },
      ),
    );
  });

  test("spreads evenly", () => {
    const counts = new Array<number>(10).fill(0);
    for (let i = 0; i < 10_000; i++) counts[Math.floor(jitterOf("10s", `task-${i}`, 1e12, 2e12) / 1_000)]!++;
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });

  test("applies to the last occurrence as a duration, not as a percentage", () => {
    expect(jitterOf("100%", "t", 0, undefined)).toBe(0);
    expect(jitterOf("1h", "t", 0, undefined)).toBeGreaterThan(0);
  });

  test.each(["0%", "101%", "1e1%", "%", "5", "-5s", "0s", ""])("%j is refused", (jitter) => {
    expect(() => jitterOf(jitter, "t", 0, 1)).toThrowError(
      expect.objectContaining({ code: "INVALID_DURATION" }),
    );
  });
});

test("a preview notes what is special about each time", () => {
  const schedule: Schedule = {
    cron: "30 2 * * *",
    timezone: "Europe/Berlin",
    except: [{ named: "holidays-de" }, { calendar: "Mon" }],
  };
  const context = { calendars: new Map([["holidays-de", ["2024-03-29"]]]) };
  const seen = previewSchedule(schedule, { from: utc("2024-03-28T12:00:00Z"), count: 3, context });
  expect(seen).toEqual({
    timezone: "Europe/Berlin",
    exhausted: false,
    notes: [],
    times: [
      {
        time: utc("2024-03-30T01:30:00Z"),
        utc: "2024-03-30T01:30:00Z",
        local: "2024-03-30T02:30:00+01:00",
        notes: [{ code: "EXCLUDED", text: "excluded before it: 2024-03-29T02:30:00+01:00 (holidays-de)" }],
      },
      {
        time: utc("2024-03-31T01:00:00Z"),
        utc: "2024-03-31T01:00:00Z",
        local: "2024-03-31T03:00:00+02:00",
        notes: [
          { code: "MOVED", text: "meant for 2024-03-31T02:30:00, which the clock skips" },
          { code: "DAY_LENGTH", text: "this day has 23 h" },
        ],
      },
      {
        time: utc("2024-04-02T00:30:00Z"),
        utc: "2024-04-02T00:30:00Z",
        local: "2024-04-02T02:30:00+02:00",
        notes: [{ code: "EXCLUDED", text: "excluded before it: 2024-04-01T02:30:00+02:00 (Mon)" }],
      },
    ],
    excluded: [
      {
        time: utc("2024-03-29T01:30:00Z"),
        utc: "2024-03-29T01:30:00Z",
        local: "2024-03-29T02:30:00+01:00",
        by: "holidays-de",
      },
      {
        time: utc("2024-04-01T00:30:00Z"),
        utc: "2024-04-01T00:30:00Z",
        local: "2024-04-01T02:30:00+02:00",
        by: "Mon",
      },
    ],
  });
  const autumn = previewSchedule(
    { cron: "30 * * * *", timezone: "Europe/Berlin", end: "2024-10-27T01:30:00Z" },
    { from: utc("2024-10-27T00:00:00Z"), count: 9 },
  );
  expect(autumn.exhausted).toBe(true);
  expect(autumn.times.map(({ local, notes }) => [local, ...notes.map(({ code }) => code)])).toEqual([
    ["2024-10-27T02:30:00+02:00", "DAY_LENGTH", "REPEATED"],
    ["2024-10-27T02:30:00+01:00", "DAY_LENGTH", "REPEATED"],
  ]);
});

const HOLIDAYS = { named: "holidays-de" };
const TEN = "2026-05-01T10:00:00Z";
const NOON = "2026-05-01T12:00:00Z";
const TEN_LATER = "2026-05-01T22:00:00Z";

test.each<[Schedule, string, string]>([
  [
    {
      cron: "0 9 * * mon-fri",
      timezone: "Europe/Berlin",
      dst: { gap: "skip" },
      except: [HOLIDAYS, { calendar: "*-12-25" }],
    },
    "0 9 * * 1-5 gap skip except (*-12-25; holidays-de)",
    "at 09:00, on Monday to Friday (Europe/Berlin), times that the clock skips are left out, except the calendar holidays-de; on the 25th of the month, in December",
  ],
  [
    {
      any: [{ every: "P1M", timezone: "Asia/Tokyo" }, { cron: "0 9 * * *" }],
      end: "2026-01-01T00:00:00+01:00",
    },
    "any of (0 9 * * *; 1 month in Asia/Tokyo) end 2025-12-31T23:00:00Z",
    "every 1 month, counted from 1970-01-01 00:00 on the clock of Asia/Tokyo; or at 09:00, every day (UTC); until 2025-12-31T23:00:00Z",
  ],
  [
    { every: "14d", timezone: "Asia/Tokyo", origin: "2026-01-01T00:00:00Z" },
    "2 weeks from 2026-01-01T00:00:00Z in Asia/Tokyo",
    "every 2 weeks, counted from 2026-01-01T00:00:00Z on the clock of Asia/Tokyo",
  ],
  [
    {
      any: [
        { cron: "0 9 * * *", timezone: "Asia/Tokyo", dst: { gap: "run-after", overlap: "first" } },
        { cron: "0 9 * * *", timezone: "Asia/Tokyo", dst: { overlap: "both" } },
        { cron: "0 8 * * *", start: TEN },
      ],
    },
    "any of (0 8 * * * start 2026-05-01T10:00:00Z; 0 9 * * * Asia/Tokyo gap run-after overlap first; 0 9 * * * Asia/Tokyo overlap both)",
    "at 09:00, every day (Asia/Tokyo), times that the clock skips run right after, times that come twice run once; or at 09:00, every day (Asia/Tokyo), times that come twice run twice; or at 08:00, every day (UTC), from 2026-05-01T10:00:00Z on",
  ],
  // The bounds of an exclusion, and its own clock.
  [
    {
      every: "1h",
      except: [
        { calendar: "Sat Asia/Tokyo" },
        { cron: "0 12 * * *", timezone: "Asia/Tokyo", start: TEN },
        { cron: "0 13 * * *", timezone: "UTC" },
        { every: "2h", end: NOON },
        { ...HOLIDAYS, timezone: "Asia/Tokyo", start: TEN, end: NOON },
        { at: NOON, end: NOON },
      ],
    },
    "1h except (0 12 * * * Asia/Tokyo start 2026-05-01T10:00:00Z; 0 13 * * * UTC; 2026-05-01T12:00:00Z end 2026-05-01T12:00:00Z; 2h end 2026-05-01T12:00:00Z; Sat *-*-* Asia/Tokyo; holidays-de Asia/Tokyo start 2026-05-01T10:00:00Z end 2026-05-01T12:00:00Z)",
    "every 1h, counted from the Unix epoch, except on Saturday (Asia/Tokyo); at 12:00, every day (Asia/Tokyo), from 2026-05-01T10:00:00Z on; at 13:00, every day (UTC); every 2h, counted from the Unix epoch, until 2026-05-01T12:00:00Z; the calendar holidays-de (Asia/Tokyo), from 2026-05-01T10:00:00Z on, until 2026-05-01T12:00:00Z; once, at 2026-05-01T12:00:00Z, until 2026-05-01T12:00:00Z",
  ],
  [
    { calendar: "*:*:0.05" },
    "*-*-* *:*:00.050000",
    "at fractions of a second, every minute, every day (UTC)",
  ],
  [
    { any: [{ every: "1h" }, { every: "60m" }] },
    "any of (1h)",
    "every 1h, counted from the Unix epoch; or every 1h, counted from the Unix epoch",
  ],
  // Fixed intervals count from the epoch, which is 09:00 in Tokyo; intervals of the calendar count from midnight there.
  [
    {
      any: [
        { every: "1h", origin: "1970-01-01T00:00:00Z" },
        { every: "1 day", origin: "1970-01-01T00:00:00Z" },
      ],
    },
    "any of (1 day; 1h)",
    "every 1h, counted from 1970-01-01T00:00:00Z; or every 1 day, counted from 1970-01-01T00:00:00Z on the clock of UTC",
  ],
  [
    {
      every: "1 day",
      timezone: "Asia/Tokyo",
      origin: "1970-01-01T00:00:00Z",
      except: [{ every: "2 days", origin: "1970-01-01T00:00:00Z" }],
    },
    "1 day from 1970-01-01T00:00:00Z in Asia/Tokyo except (2 days from 1970-01-01T00:00:00Z)",
    "every 1 day, counted from 1970-01-01T00:00:00Z on the clock of Asia/Tokyo, except every 2 days, counted from 1970-01-01T00:00:00Z",
  ],
  // An interval of the calendar without a zone is read on the clock of the schedule, here not UTC.
  [
    {
      cron: "0 0 * * *",
      timezone: "Asia/Tokyo",
      except: [{ every: "2 days" }, { every: "1 month", timezone: "UTC" }, { every: "90m" }],
    },
    "0 0 * * * except (1 month in UTC; 1h30m; 2 days)",
    "at 00:00, every day (Asia/Tokyo), except every 2 days, counted from 1970-01-01 00:00; every 1 month, counted from 1970-01-01 00:00 on the clock of UTC; every 1h30m, counted from the Unix epoch",
  ],
])("%j in words", (schedule, canonical, description) => {
  expect(canonicalSchedule(schedule)).toBe(canonical);
  expect(describeSchedule(schedule)).toBe(description);
});

test("canonical form and description resolve H for the task, also in exclusions and members", () => {
  const of = (minute: string): Schedule => {
    const nine = `${minute} 9 * * *`;
    return {
      any: [{ cron: nine }, { cron: nine, timezone: "Asia/Tokyo", except: [{ cron: `${minute} 9 * * 0` }] }],
    };
  };
  for (const [task, minute] of [
    ["a", "30"],
    ["b", "38"],
  ] as const) {
    expect(describeSchedule(of("H"), task)).toBe(describeSchedule(of(minute)));
    expect(canonicalSchedule(of("H"), task)).toBe(canonicalSchedule(of(minute)));
  }
});

test.each<[Schedule, string[]]>([
  [{ cron: "* * * * *", except: [{ calendar: "*-*-*" }] }, ["NEVER_FIRES"]],
  [{ any: [{ cron: "0 0 31 2 *" }, { every: "1h" }] }, ["NEVER_FIRES"]],
  [{ every: "1h", except: [{ calendar: "*-02-30" }, HOLIDAYS] }, ["EXCLUDES_NOTHING"]],
  // Removes hours of one day, without a midnight among them.
  [{ every: "1h", except: [{ calendar: "*-*-*", start: TEN, end: NOON }] }, []],
  [{ every: "1h", except: [{ calendar: "*-05-02", start: TEN, end: NOON }] }, ["EXCLUDES_NOTHING"]],
  // On the clock of the schedule: these hours are 19:00 to 21:00 in Tokyo.
  [
    { cron: "0 * * * *", timezone: "Asia/Tokyo", except: [{ cron: "0 20 * * *", start: TEN, end: NOON }] },
    [],
  ],
  [
    {
      any: [{ cron: "0 * * * *", timezone: "Asia/Tokyo" }, { every: "1h" }],
      except: [
        { calendar: "20:00", start: TEN, end: NOON },
        { cron: "0 9 * * *", start: TEN, end: NOON },
      ],
    },
    ["EXCLUDES_NOTHING"],
  ],
  // On its own clock: the same hours, which contain a midnight there.
  [{ every: "1h", except: [{ cron: "0 20 * * *", timezone: "Asia/Tokyo", start: TEN, end: NOON }] }, []],
  [{ every: "1h", except: [{ calendar: "20:00 Asia/Tokyo", start: TEN, end: NOON }] }, []],
  [{ every: "1h", except: [{ every: "1 day", timezone: "Asia/Tokyo", start: NOON, end: TEN_LATER }] }, []],
  [
    { cron: "0 * * * *", timezone: "Asia/Tokyo", except: [{ every: "1 day", start: NOON, end: TEN_LATER }] },
    [],
  ],
  // A day that began at 01:00, with a skipped time that runs late.
  [{ every: "1h", except: [{ calendar: "2018-11-04", timezone: "America/Sao_Paulo" }] }, []],
  [
    { cron: "30 2 * * *", timezone: "Europe/Paris", except: [{ calendar: "2024-03-31 02:30 Europe/Paris" }] },
    ["DIALECT_DIFFERS"],
  ],
  [{ any: [{ every: "1h", except: [{ calendar: "*-02-30" }] }] }, ["EXCLUDES_NOTHING"]],
  [{ cron: "0 9 * * *", dst: { gap: "skip" } }, ["DST_IGNORED"]],
  [{ cron: "0 9 * * *", timezone: "Europe/Paris", dst: { gap: "skip" } }, []],
  [{ cron: "30 2 * * *", timezone: "Europe/Paris" }, ["DIALECT_DIFFERS"]],
  [{ cron: "30 2 * * *", timezone: "Europe/Paris", dialect: "cron-parser" }, []],
  // A gap of whole hours that begins on the hour: both times run right after it.
  [{ cron: "0 2 * * *", timezone: "Europe/Paris" }, []],
  [{ cron: "*/20 1-3 * * *", timezone: "Europe/Paris" }, ["DIALECT_DIFFERS"]],
  [{ cron: "30 2 * * 1-5", timezone: "Europe/Paris" }, []],
  [{ cron: "0 0 */2 * 1" }, ["DIALECT_DIFFERS"]],
  [{ cron: "0 0 1 * 1" }, ["DAY_UNION"]],
  [{ any: [{ cron: "0 0 * * 1" }, { cron: "0 0 1-7 * */2" }] }, ["DIALECT_DIFFERS"]],
  [{ every: "1 month", origin: "2026-01-31T00:00:00Z" }, ["DAY_MISSING"]],
  [{ every: "1 month", origin: "2026-01-28T00:00:00Z" }, []],
  // Every December has a day 31, and no June has; not every February has a day 29.
  [{ every: "1 year", origin: "2026-12-31T00:00:00Z" }, []],
  [{ every: "6 months", origin: "2026-12-31T00:00:00Z" }, ["DAY_MISSING"]],
  [{ every: "1 year", origin: "2024-02-29T00:00:00Z" }, ["DAY_MISSING"]],
  // In Tokyo the origin is on the 1st.
  [{ every: "1 month", origin: "2026-01-31T20:00:00Z", timezone: "Asia/Tokyo" }, []],
])("%j is warned about with %j", (schedule, codes) => {
  const warnings = lintSchedule(schedule);
  expect(warnings.map(({ code }) => code)).toEqual(codes);
  for (const { remedy } of warnings) expect(remedy).toMatch(/^[A-Z].*\.$/);
});

describe("a time that the clock skips and that does not run", () => {
  const notesOf = (schedule: Schedule, from: string) =>
    previewSchedule(schedule, { from: utc(from), count: 3 }).times.map(({ local, notes }) => [
      local.slice(0, 10),
      ...notes.filter(({ code }) => code === "LOST").map(({ text }) => text),
    ]);

  test("is named before the time that follows", () => {
    const lost = "the clock skips 2027-03-28T02:30:00 before it: no run then";
    const daily: Schedule = { calendar: "02:30", timezone: "Europe/Berlin" };
    expect(notesOf(daily, "2027-03-26T12:00:00Z")).toEqual([
      ["2027-03-27"],
      ["2027-03-29", lost],
      ["2027-03-30"],
    ]);
    // Also right at the start, and with a rule that was chosen.
    expect(notesOf({ ...daily, dst: { gap: "skip" } }, "2027-03-27T12:00:00Z")[0]).toEqual([
      "2027-03-29",
      lost,
    ]);
  });

  test("is not, if it runs later, was excluded, or another one is near", () => {
    const from = "2027-03-27T12:00:00Z";
    const zone = { timezone: "Europe/Berlin" };
    for (const schedule of [
      { cron: "30 2 * * *", ...zone },
      { calendar: "02:30", ...zone, dst: { gap: "run-after" } },
      { calendar: "02:30", ...zone, except: [{ calendar: "2027-03-28" }] },
      { calendar: "*:0/30", ...zone },
      { calendar: "02:30" },
    ] as Schedule[]) {
      expect(notesOf(schedule, from).flatMap((notes) => notes.slice(1))).toEqual([]);
    }
  });
});

test("dependencies list what a schedule depends on", () => {
  const schedule: Schedule = {
    any: [{ cron: "H 9 * * *" }, { every: "1h", except: [HOLIDAYS] }],
    except: [HOLIDAYS],
  };
  expect(calendarsOf(schedule)).toEqual(["holidays-de"]);
  expect([usesSeed(schedule), usesSeed({ cron: "0 9 * * *" }), usesSeed({ every: "1h" })]).toEqual([
    true,
    false,
    false,
  ]);
});

test("shared calendars are checked entry by entry", () => {
  expect(checkCalendar(["2026-12-25", "*-05-01", "Sat,Sun"])).toEqual(["2026-12-25", "*-05-01", "Sat,Sun"]);
  expect(() => checkCalendar(["2026-12-25", "2026-02-30"])).toThrow(/entries\[1\].*does not exist/);
  expect(() => checkCalendar(["Xmas"])).toThrow(/entries\[0\].*neither a date nor a calendar event/);
  expect(() => checkCalendar("2026-12-25")).toThrow(/list of texts/);
  for (const none of ["2026-00-10", "2026-13-10", "2026-10-00", "2026-04-31"]) {
    expect(() => checkCalendar([none])).toThrow(/entries\[0\].*does not exist/);
  }
  const many = (length: number, entry: string) => checkCalendar(Array.from({ length }, () => entry));
  expect([many(4_096, "2026-12-25"), many(64, "*-05-01")].map(({ length }) => length)).toEqual([4_096, 64]);
  expect(() => many(4_097, "2026-12-25")).toThrow(/4096/);
  expect(() => many(65, "*-05-01")).toThrow(/entries\[64\]: More than 64/);
  expect(() => checkCalendar([`*-05-01${" ".repeat(600)}`])).toThrow(/entries\[0\].*at most 512/);
});
