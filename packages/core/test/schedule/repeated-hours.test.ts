import { expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import {
  type CompiledSchedule,
  compileSchedule,
  type Schedule,
  type ScheduleExclusion,
  type SimpleSchedule,
} from "../../src/schedule/index.js";
import { changesOf, type Segment, zoneOf } from "../../src/schedule/zone/offsets.js";

/*
 * The times of a schedule do not depend on the instant at which somebody asks: schedules around the clock changes of all
 * zones, asked from inside the hours that come twice.
 */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const FIRST_YEAR = 1973;
const LAST_YEAR = 2037;
const YEARS = Array.from({ length: LAST_YEAR - FIRST_YEAR + 1 }, (_, n) => FIRST_YEAR + n);
const ZONES = Intl.supportedValuesOf("timeZone");
/** Zones of one run; all of them by `npm run test:zones`. */
const SAMPLE = process.env.CARILLON_ZONES === "all" ? ZONES.length : 12;

const year = fc.integer({ min: FIRST_YEAR, max: LAST_YEAR });

function changesIn(timezone: string, year: number): Segment[] {
  return changesOf(zoneOf(timezone), Date.UTC(year, 0, 1) - 1, Date.UTC(year + 1, 0, 1) - 1);
}

function walk(schedule: CompiledSchedule, after: number, to: number): number[] {
  const times: number[] = [];
  for (let time = schedule.next(after); time !== undefined && time <= to; time = schedule.next(time))
    times.push(time);
  return times;
}

const iso = (time: number | undefined) => (time === undefined ? "never" : new Date(time).toISOString());

/** The zones of the system, in an order that differs with each seed. */
const zonesOf = (count: number) =>
  fc.shuffledSubarray(ZONES, { minLength: count }).map((all) => all.slice(0, count));

/** A zone with a clock that goes back, and one such change. */
const change = fc
  .tuple(
    fc.constantFrom(
      ...ZONES,
      // More often: changes of half an hour, two hours, a day, at midnight, and several a year.
      ...[
        "Australia/Lord_Howe",
        "Antarctica/Troll",
        "Pacific/Apia",
        "America/Havana",
        "Africa/Casablanca",
      ].flatMap((one) => Array<string>(10).fill(one)),
    ),
    year,
  )
  .map(([timezone, year]) => ({
    timezone,
    change: changesIn(timezone, year).find(({ offset, before }) => offset < before),
  }))
  .filter((one): one is { timezone: string; change: Segment } => one.change !== undefined);

const MINUTES = ["*", "0", "30", "0,45", "*/15", "10-50/20", "H", "H/20", "H(0-29)"];
const HOURS = ["*", "*/2", "0-5", "0,1,2,3,23", "2", "H", "H(0-3)"];
const cronText = fc
  .tuple(
    fc.constantFrom("", "", "0 ", "*/20 "),
    fc.constantFrom(...MINUTES),
    fc.constantFrom(...HOURS),
    fc.constantFrom("* * *", "* * *", "* * 0,6", "*/2 * 1"),
  )
  .map(([second, minute, hour, day]) => `${second}${minute} ${hour} ${day}`);
const calendarText = fc.oneof(
  fc.constantFrom("minutely", "hourly", "daily"),
  fc
    .tuple(
      fc.constantFrom("", "", "Sat,Sun ", "*-*~3/1 "),
      fc.constantFrom("*", "0/2", "0..5", "00,01,02,23", "2", "1..3"),
      fc.constantFrom("*", "0/15", "00,30", "17", "59:59", "0/30:0/20", "30:00.5"),
    )
    .map(([day, hour, minute]) => `${day}${hour}:${minute}`),
);
const dst = fc.option(
  fc.record(
    {
      gap: fc.constantFrom("run-after" as const, "skip" as const),
      overlap: fc.constantFrom("first" as const, "both" as const),
    },
    { requiredKeys: [] },
  ),
  { nil: undefined, freq: 3 },
);

/** @param origin near the change, perhaps in the second pass */
function simple(timezone: string, origin: number): fc.Arbitrary<SimpleSchedule> {
  return fc.oneof(
    fc.record({ cron: cronText, timezone: fc.constant(timezone), dst }),
    fc.record({
      cron: fc.constantFrom("* * * * *", "0 * * * *", "30 1,2 * * *", "*/20 0-3 * * *"),
      timezone: fc.constant(timezone),
      dialect: fc.constant("cron-parser" as const),
    }),
    { weight: 2, arbitrary: fc.record({ calendar: calendarText, timezone: fc.constant(timezone), dst }) },
    fc.record({
      every: fc.constantFrom("1 day", "2 days", "1 week", "1 month"),
      timezone: fc.constant(timezone),
      origin: fc.constantFrom(origin, origin - 24 * HOUR, origin - 48 * HOUR - MINUTE).map(iso),
    }),
    fc.record({ every: fc.constantFrom("7m", "15m", "1h", "1d") }),
  );
}

const exception: fc.Arbitrary<ScheduleExclusion> = fc.oneof(
  fc.constantFrom("*:30", "Sun", "*-*-* 02:00", "1..2:*", "*:0/10").map((calendar) => ({ calendar })),
  fc.constantFrom("*/30 * * * *", "0 2 * * *", "* 1 * * *").map((cron) => ({ cron })),
  fc.constant({ every: "2h" }),
);

function scheduleIn(timezone: string, origin: number): fc.Arbitrary<Schedule> {
  const one = simple(timezone, origin);
  const except = fc.array(exception, { minLength: 1, maxLength: 2 });
  return fc.oneof(
    { weight: 2, arbitrary: one },
    fc.tuple(one, except).map(([alone, without]) => ({ ...alone, except: without })),
    fc.array(one, { minLength: 2, maxLength: 3 }).map((any) => ({ any })),
    fc
      .tuple(fc.array(one, { minLength: 2, maxLength: 3 }), except)
      .map(([any, without]) => ({ any, except: without })),
  );
}

/** A schedule, the middle of an hour that comes twice, and instants around it. */
const asked = change.chain(({ timezone, change: { start, offset, before } }) => {
  const repeated = before - offset;
  const instant = fc
    .integer({ min: -2 * repeated - MINUTE, max: 2 * repeated + MINUTE })
    .map((ms) => start + ms);
  return fc.record({
    schedule: instant.chain((origin) => scheduleIn(timezone, Math.floor(origin / 1_000) * 1_000)),
    from: fc.constant(start - 2 * repeated - HOUR),
    to: fc.constant(start + 2 * repeated + HOUR),
    instants: fc.array(
      fc.oneof(
        instant,
        instant.map((ms) => Math.floor(ms / MINUTE) * MINUTE),
      ),
      { minLength: 10, maxLength: 10 },
    ),
  });
});

test("the times of a schedule are the same from whatever instant they are asked", () => {
  fc.assert(
    fc.property(asked, fc.string({ maxLength: 3 }), ({ schedule, from, to, instants }, seed) => {
      const compiled = compileSchedule(schedule, seed);
      const times = walk(compiled, from, to);
      // With all times excluded, each search would take long.
      if (times.length === 0) return;
      const beyond = compiled.next(to);
      const missed: string[] = [];
      for (const instant of [...instants, ...times.slice(0, 50)]) {
        const next = times.find((time) => time > instant) ?? beyond;
        const latest = times.findLast((time) => time <= instant);
        if (compiled.next(instant) !== next)
          missed.push(`next after ${iso(instant)}: ${iso(compiled.next(instant))}, not ${iso(next)}`);
        if (latest !== undefined && compiled.latest(instant) !== latest)
          missed.push(`latest at ${iso(instant)}: ${iso(compiled.latest(instant))}, not ${iso(latest)}`);
      }
      expect(missed).toEqual([]);
    }),
    { numRuns: 20 * SAMPLE },
  );
}, 600_000);

/** Events that recur in each hour, and their period. */
const RECURRING: ReadonlyArray<[schedule: (timezone: string) => Schedule, period: number]> = [
  [(timezone) => ({ calendar: "minutely", timezone }), MINUTE],
  [(timezone) => ({ calendar: "hourly", timezone }), HOUR],
  [(timezone) => ({ calendar: "*:0/15", timezone }), 15 * MINUTE],
  [(timezone) => ({ calendar: "*-*-* *:00,30:00", timezone }), 30 * MINUTE],
  [(timezone) => ({ calendar: "00..23:17", timezone }), HOUR],
  [(timezone) => ({ cron: "* * * * *", timezone }), MINUTE],
  [(timezone) => ({ cron: "*/15 * * * *", timezone }), 15 * MINUTE],
  [(timezone) => ({ cron: "0 * * * *", timezone }), HOUR],
  [(timezone) => ({ cron: "H * * * *", timezone }), HOUR],
  [(timezone) => ({ cron: "H/15 * * * *", timezone }), 15 * MINUTE],
  [
    (timezone) => ({
      any: [
        { calendar: "hourly", timezone },
        { calendar: "*:30", timezone },
      ],
    }),
    30 * MINUTE,
  ],
  [(timezone) => ({ calendar: "*:0/15", timezone, except: [{ calendar: "2001-01-15" }] }), 15 * MINUTE],
];

test("what recurs in each hour keeps its period through each clock change", () => {
  fc.assert(
    fc.property(zonesOf(SAMPLE), fc.string({ maxLength: 3 }), (zones, seed) => {
      const wrong: string[] = [];
      for (const timezone of zones) {
        const changes = YEARS.flatMap((year) => changesIn(timezone, year));
        for (const [scheduleOf, period] of RECURRING) {
          const compiled = compileSchedule(scheduleOf(timezone), seed);
          for (const { start, offset, before } of changes) {
            // A change that is not a multiple of the period moves the rhythm: the gap is then up to twice as long.
            const longest = (offset - before) % period === 0 ? period : 2 * period - 1;
            const reach = Math.abs(offset - before) + 2 * period;
            const times = walk(compiled, start - reach - period, start + reach);
            const gap = Math.max(...times.slice(1).map((time, i) => time - times[i]!));
            if (times.length < 3 || gap > longest)
              wrong.push(`${JSON.stringify(scheduleOf(timezone))}: ${gap / MINUTE} min at ${iso(start)}`);
          }
        }
      }
      expect(wrong.slice(0, 5)).toEqual([]);
    }),
    { numRuns: 1 },
  );
}, 600_000);

test.each(["cron", "calendar"] as const)("%s: a fixed time runs once, in the first pass", (kind) => {
  fc.assert(
    fc.property(change, fc.nat(), ({ timezone, change: { start, offset, before } }, n) => {
      const repeated = before - offset;
      const first = start - repeated + (n % (repeated / MINUTE)) * MINUTE;
      const [hour, minute] = new Date(first + before).toISOString().slice(11, 16).split(":").map(Number);
      const schedule: Schedule =
        kind === "cron"
          ? { cron: `${minute} ${hour} * * *`, timezone }
          : { calendar: `${hour}:${minute}`, timezone };
      expect(walk(compileSchedule(schedule), start - repeated - 1, start + repeated - 1)).toEqual([first]);
      expect(compileSchedule(schedule).next(start)).toBeGreaterThanOrEqual(start + repeated);
    }),
    { numRuns: 4 * SAMPLE },
  );
});
