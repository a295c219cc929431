import { CronExpressionParser } from "cron-parser";
import { expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import { isCarillonError } from "../../src/errors.js";
import {
  type CronSchedule,
  canonicalSchedule,
  compileSchedule,
  describeSchedule,
  previewSchedule,
} from "../../src/schedule/index.js";
import { zoneOf } from "../../src/schedule/zone/offsets.js";
import { pick } from "./arbitraries.js";

/* Compares the dialect of cron-parser with the library itself, in the version that BullMQ uses. */

const ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Kolkata"].concat([
  // Zones with gaps that begin at midnight, and one with a gap that ends there.
  "Africa/Cairo",
  "America/Santiago",
  "America/Nuuk",
]);
const START = Date.UTC(2026, 0, 1);
const END = Date.UTC(2028, 0, 1);
const HOUR = 3_600_000;

/** Random expressions; all 5,000 by `npm run test:dialect`. */
const RUNS = Number(process.env.CARILLON_DIALECT_RUNS ?? 80);
/** Number of times walked from the start, and from before each clock change. */
const [STEPS, STEPS_AT_CHANGE] = RUNS > 500 ? [20, 3] : [6, 3];

/** One search, as in BullMQ's `getNextMillis`. */
function libraryNext(cron: string, timezone: string, after: number): number | undefined {
  const expression = CronExpressionParser.parse(cron, { tz: timezone, currentDate: new Date(after) });
  try {
    return expression.next().getTime();
  } catch {
    return undefined;
  }
}

const upTo = (min: number, max: number) => fc.integer({ min, max });
const NAMES = ["SUN", "mon", "Tue", "WED", "thu", "Fri", "SAT"];
const MONTHS = ["jan", "FEB", "Mar", "apr", "may", "jun", "jul", "aug", "sep", "OCT", "nov", "dec"];
const span = (min: number, max: number) =>
  fc.tuple(upTo(min, max), upTo(min, max)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
const value = (min: number, max: number) => upTo(min, max).map(String);
const range = (min: number, max: number) => span(min, max).map(([a, b]) => `${a}-${b}`);
const stepped = (min: number, max: number) =>
  fc
    .tuple(fc.oneof(pick("*", "?"), value(min, max), range(min, max)), upTo(1, max + 2))
    .map(([base, step]) => `${base}/${step}`);
const listed = (min: number, max: number) =>
  fc
    .uniqueArray(fc.oneof({ weight: 4, arbitrary: value(min, max) }, range(min, max)), {
      minLength: 2,
      maxLength: 4,
    })
    .map((items) => items.join(","));
const field = (min: number, max: number, star = 3, others: readonly string[] = []) =>
  fc.oneof(
    { weight: star, arbitrary: pick("*", "*", "?") },
    { weight: 3, arbitrary: value(min, max) },
    { weight: 1, arbitrary: range(min, max) },
    { weight: 2, arbitrary: stepped(min, max) },
    { weight: 2, arbitrary: listed(min, max) },
    ...(others.length > 0 ? [{ weight: 1, arbitrary: pick(...others) }] : []),
  );
/** Hours near clock changes. */
const nightly = fc.oneof(
  pick("0", "1", "2", "3", "23", "22", "0,23", "22,23", "1-3", "0-2", "2,5", "*/2", "0-22", "0-23", "23-23"),
  field(0, 23, 2),
);
const weekdays = NAMES.flatMap((name, n) => [`${n}L`, `${name}L`, `${n}#${(n % 5) + 1}`, `${name}#2`, name]);
const expression = fc
  .record({
    s: fc.oneof({ weight: 5, arbitrary: fc.constant("") }, { weight: 1, arbitrary: field(0, 59, 1) }),
    m: fc.oneof(pick("0", "30", "59", "*", "*/10"), field(0, 59, 1)),
    h: nightly,
    d: field(1, 31, 6, ["L", "15,L", "1,L"]),
    n: field(1, 12, 20, [...MONTHS, "jan-mar", "3,OCT"]),
    w: field(0, 7, 8, [...weekdays, "mon-FRI", "1,5L", "0-7", "5-7", "1-7/2"]),
  })
  .map(({ s, m, h, d, n, w }) => `${s} ${m} ${h} ${d} ${n} ${w}`.trim());

/** Starts of the segments of a zone within the test's years. */
function changes(timezone: string): number[] {
  const zone = zoneOf(timezone);
  const found: number[] = [];
  if (zone === undefined) return found;
  for (let segment = zone.at(START); segment.end < END; segment = zone.at(segment.end)) {
    const next = zone.at(segment.end);
    if (next.offset !== next.before) found.push(segment.end);
  }
  return found;
}

/**
 * Starting points of walks: times of the schedule, because a BullMQ job scheduler continues from its last time, or the
 * start.
 */
function begins(timezone: string, latest: (at: number) => number | undefined) {
  const near = changes(timezone).flatMap((change) => [change - 25 * HOUR, change - HOUR - 1, change - 1]);
  const found = near.map((at) => latest(at)).filter((time) => time !== undefined && time > START);
  return [...new Set(found)] as number[];
}

/**
 * Detects two bugs of the library at a gap that ends at midnight, such as Nuuk's from 23:00 to 24:00. If the last hour
 * is 22, the library loses the day of the gap. If 22 and 23 are in the schedule and the next day is not, it fires at
 * midnight of a later day that is.
 */
function gapAtEndOfDay({ cron, timezone = "UTC" }: CronSchedule, last: number, theirs: number): boolean {
  if (timezone !== "America/Nuuk") return false;
  const gap = changes(timezone).find((change) => change > last);
  if (gap === undefined || gap - last > 26 * HOUR || theirs < gap) return false;
  const hours = CronExpressionParser.parse(cron).fields.hour.values as readonly number[];
  const local = new Date(theirs + zoneOf(timezone)!.at(theirs).offset);
  return hours.at(-1) === 22 || (hours.includes(22) && hours.at(-1) === 23 && local.getUTCHours() === 0);
}

function accepts(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === "TypeError") throw error;
    return false;
  }
}

test(`${RUNS} random expressions in ${ZONES.length} zones fire when cron-parser fires`, () => {
  const all = fc.sample(fc.tuple(expression, pick(...ZONES)), { numRuns: RUNS, seed: 20_261_123 });
  const wrong: unknown[] = [];
  let compared = 0;
  let refused = 0;
  let excluded = 0;
  for (const [cron, timezone] of all) {
    const schedule = { cron, timezone, dialect: "cron-parser" } as const;
    const valid = accepts(() => CronExpressionParser.parse(cron));
    // The library refuses some expressions that can never fire, such as 31 April. A put refuses them too.
    const fires = () => compileSchedule(schedule).next(START) !== undefined;
    if (accepts(() => compileSchedule(schedule)) !== valid && (valid || fires())) wrong.push({ cron, valid });
    if (!valid) refused++;
    if (!valid || wrong.length > 20) continue;
    const compiled = compileSchedule(schedule);
    const walk = (from: number, steps: number) => {
      for (let n = 0, last = from; n < steps && last < END; n++) {
        const ours = Math.min(compiled.next(last) ?? END, END);
        const theirs = Math.min(libraryNext(cron, timezone, last) ?? END, END);
        compared++;
        if (ours !== theirs) {
          if (gapAtEndOfDay(schedule, last, theirs)) excluded++;
          else
            wrong.push([cron, timezone, ...[last, ours, theirs].map((time) => new Date(time).toISOString())]);
          return;
        }
        last = ours;
      }
    };
    walk(START - 1, STEPS);
    for (const begin of begins(timezone, (at) => compiled.latest(at))) walk(begin, STEPS_AT_CHANGE);
  }
  expect(wrong).toEqual([]);
  expect(compared).toBeGreaterThan(RUNS * 8);
  expect(refused).toBeLessThan(RUNS / 4);
  expect(excluded).toBeLessThan(Math.max(3, RUNS / 100));
});

/** The library refuses these too, except the marked ones. */
test.each([
  ["0 0 15W * *", "no W"],
  ["0 0 LW * *", "no W"],
  ["H * * * *", "at random"], // The library accepts this one.
  ["0 0 l * *", "not for dialect"],
  ["0 0 * * 5l", "not for dialect"],
  ["0 0 * * 1#2,3#1", "a union"],
  ["0 0 * * sat-SUN", "Sunday ends a range as 7"],
  ["0 0 * * 5-0", "Sunday ends a range as 7"],
  ["0 0 * * 0,7", "0 twice"],
  ["1,1-3 * * * *", "1 twice"],
  ["0 0 L,L * *", "L twice"],
  ["5* * * * *", "not a value"], // The library reads it as 50-59.
  ["1-5-9 * * * *", "not a value"], // The library reads it as 1-5.
  ["0 0 15L * *", "not a value"], // The library reads it as L.
  ["0 0 * mon *", "not a value"], // The library reads it as January.
  ["0 0 * * Wednesday", "Did you mean WED?"],
  ["0,,5 * * * *", "empty entry"],
  ["@midnight", "not known"],
  ["@Daily", "not known"],
  ["*", "has 1 field"], // The library reads it as * * * * *.
])("the dialect refuses %s: %s", (cron, message) => {
  const compile = () => compileSchedule({ cron, dialect: "cron-parser" });
  expect(compile).toThrow(message);
  try {
    compile();
  } catch (error) {
    expect(isCarillonError(error, "INVALID_SCHEDULE")).toBe(true);
  }
});

test.each([
  ["@weekdays", "0 0 * * 1-5"],
  ["@secondly", "* * * * * *"],
  ["? ?/2 ? 5/3 FRIL", "* */2 * 5/3 5L"],
  ["0 0 */2 * 7#1", "0 0 */2 * 0#1"],
])("%s is %s in the dialect", (cron, canonical) => {
  const schedule = { cron, dialect: "cron-parser" } as const;
  expect(canonicalSchedule(schedule)).toBe(`${canonical} dialect cron-parser`);
  const [first] = previewSchedule(schedule, { from: START, count: 1 }).times;
  expect(first?.time).toBe(libraryNext(cron, "UTC", START));
});

test("descriptions name the dialect, also of members and exclusions", () => {
  const member = { cron: "30 2 * * *", timezone: "Europe/Berlin", dialect: "cron-parser" } as const;
  const except = [{ cron: "0 0 */2 * 1", dialect: "cron-parser" as const }];
  expect(describeSchedule(member)).toBe("at 02:30, every day (Europe/Berlin), by the rules of cron-parser");
  expect(canonicalSchedule({ any: [member], except })).toBe(
    "any of (30 2 * * * dialect cron-parser Europe/Berlin) except (0 0 */2 * 1 dialect cron-parser)",
  );
  const { times } = previewSchedule(member, { from: Date.UTC(2026, 2, 28, 12), count: 1 });
  expect(times).toMatchObject([
    { local: "2026-03-29T03:30:00+02:00", notes: [{ code: "MOVED" }, { code: "DAY_LENGTH" }] },
  ]);
  // Removes days 1, 3, … and each Monday: the 2nd is left.
  const left = compileSchedule({ cron: "0 0 * * *", except });
  expect(left.next(Date.UTC(2026, 1, 28))).toBe(Date.UTC(2026, 2, 4));
});

/* Limits of "exactly": zones whose clock changes by other than an hour, or back to midnight. */
test("the library gives up on changes of half an hour, and the dialect fires", () => {
  const [cron, timezone] = ["0 3 * * *", "Australia/Lord_Howe"] as const;
  const last = Date.parse("2026-04-03T16:00:00Z");
  expect(libraryNext(cron, timezone, last)).toBeUndefined();
  expect(compileSchedule({ cron, timezone, dialect: "cron-parser" }).next(last)).toBe(
    Date.parse("2026-04-04T16:30:00Z"),
  );
});

test("the library takes the second of two midnights, the dialect the first", () => {
  const [cron, timezone] = ["0 0 * * *", "Atlantic/Azores"] as const;
  const last = Date.parse("2026-10-24T00:00:00Z");
  expect(libraryNext(cron, timezone, last)).toBe(Date.parse("2026-10-25T01:00:00Z"));
  expect(compileSchedule({ cron, timezone, dialect: "cron-parser" }).next(last)).toBe(
    Date.parse("2026-10-25T00:00:00Z"),
  );
});
