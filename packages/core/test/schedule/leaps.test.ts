import { describe, expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import { compileSchedule, membersOf } from "../../src/schedule/compile.js";
import { excluderAt } from "../../src/schedule/exclude/excluding-schedule.js";
import type { Schedule } from "../../src/schedule/index.js";
import { bounds, pick } from "./arbitraries.js";

/* Compares searches that leap over excluded days and hours with a walk through each time. */

const DAY = 86_400_000;
/** Zones whose clocks change by an hour, half an hour or a day, by odd seconds, at midnight and for Ramadan. */
const zone = pick(
  "UTC",
  "Europe/Paris",
  "America/New_York",
  "Asia/Kolkata",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Africa/Monrovia",
  "Africa/Cairo",
  "Africa/Casablanca",
);
const timezone = fc.option(zone, { nil: undefined });
const second = pick("", "", "", "30 ", "* ");
const minute = pick("*", "*/2", "1-59/2", "*/5", "0-29", "30-59", "0", "0,45", "*/7");
const hour = pick("*", "*/2", "1-23/2", "0-11", "12-23", "2-3", "0-1,4-23", "2");
const date = pick("* *", "* *", "* *", "1-15 *", "16-31 *", "* 1-6", "* 7-12");
const weekday = pick("*", "*", "1-5", "0,6");
const cron = fc
  .record({ second, minute, hour, date, weekday })
  .map((parts) => `${parts.second}${parts.minute} ${parts.hour} ${parts.date} ${parts.weekday}`);
const every = pick("1m", "2m", "7m", "30m", "90m", "1h", "2h", "6h", "10s", "90s", "1d");
const days = pick("1 day", "1 day", "2 days", "1 week", "1 month");
const origin = fc.option(pick("2023-10-29T01:30:00Z", "2011-12-29T10:30:00Z", "2024-03-31T01:00:30Z"), {
  nil: undefined,
});
const dst = pick(undefined, { gap: "run-after" }, { gap: "skip" }, { overlap: "first" }, { overlap: "both" });
const simple = fc.oneof(
  { weight: 3, arbitrary: fc.record({ cron, timezone: zone, dst }) },
  { weight: 1, arbitrary: fc.record({ every, origin }) },
  { weight: 1, arbitrary: fc.record({ every: days, timezone: zone, origin }) },
);
const calendar = pick(
  "*:*",
  "*:0/2",
  "*:1/2",
  "0..11:*",
  "12..23:*",
  "Sat,Sun",
  "Mon..Fri",
  "*-*-1/2",
  "*-1..6-*",
);
const exclusion = fc
  .tuple(
    fc.oneof(
      { weight: 2, arbitrary: fc.record({ cron, timezone }) },
      { weight: 1, arbitrary: fc.record({ calendar, timezone }) },
      { weight: 1, arbitrary: fc.record({ every, origin }) },
      { weight: 1, arbitrary: fc.record({ every: days, timezone, origin }) },
    ),
    fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, bounds),
  )
  .map(([spec, limits]) => ({ ...spec, ...limits }));
const except = fc.array(exclusion, { minLength: 1, maxLength: 5 });
/** Times near clock changes of these zones. */
const CHANGES = [
  "2024-03-31T01:00:00Z",
  "2024-10-27T01:00:00Z",
  "2024-03-10T07:00:00Z",
  "2024-11-03T06:00:00Z",
  "2024-04-06T15:00:00Z",
  "2024-10-05T15:30:00Z",
  "2024-04-25T22:00:00Z",
  "2024-10-31T21:00:00Z",
  "2024-04-14T02:00:00Z",
  "2011-12-30T10:00:00Z",
  "1972-01-07T00:44:30Z",
];
const time = fc
  .tuple(pick(...CHANGES), fc.integer({ min: -100, max: 100 }), pick(1, 10, 30, 1_440, 14_400))
  .map(([change, n, minutes]) => Date.parse(change) + n * minutes * 60_000);

test("leaps find the same times as a search time by time", () => {
  fc.assert(
    fc.property(simple, except, time, (one, except, at) => {
      const schedule = { ...one, except } as Schedule;
      const [part] = membersOf(schedule, { seed: "", context: {}, lenient: false });
      const { before, excluders } = part!;
      /** Undefined: none is left within that number of steps. */
      const walk = (
        first: number | undefined,
        onward: (time: number) => number | undefined,
        most: number,
      ) => {
        let time = first;
        for (let n = 0; n < most && time !== undefined; n++, time = onward(time)) {
          if (excluderAt(excluders, time) === undefined) return time;
        }
        return undefined;
      };
      const after = (time: number, most: number) =>
        walk(before.next(time), (last) => before.next(last), most);
      const upTo = (time: number, most: number) =>
        walk(before.latest(time), (last) => before.latest(last - 1), most);
      const compiled = compileSchedule(schedule);
      const next = compiled.next(at);
      const latest = compiled.latest(at);
      const near = (found: number | undefined) => found !== undefined && Math.abs(found - at) < 1_000 * DAY;
      const following = after(at, 400);
      if (near(following)) expect(next).toBe(following);
      const last = upTo(at, 400);
      if (near(last)) expect(latest).toBe(last);
      for (const part of [0.2, 0.5, 0.9]) {
        if (next !== undefined) {
          expect(excluderAt(excluders, next)).toBeUndefined();
          expect(after(Math.floor(at + (next - at) * part), 50) ?? next).toBeGreaterThanOrEqual(next);
        }
        if (latest !== undefined) {
          expect(excluderAt(excluders, latest)).toBeUndefined();
          expect(upTo(Math.ceil(at + (latest - at) * part), 50) ?? latest).toBeLessThanOrEqual(latest);
        }
      }
    }),
    { numRuns: 400 },
  );
});

describe("no leap skips times around a change of the clock", () => {
  const paris = { timezone: "Europe/Paris" };
  const night: Schedule = { cron: "* * * * *", ...paris, except: [{ cron: "* 0-3 * * *" }] };
  const morning: Schedule = { cron: "* * * * *", ...paris, except: [{ cron: "* 1-5 * * *" }] };
  const daily = { every: "1 day", origin: "2024-01-31T01:30:00Z" };
  test.each<[string, "next" | "latest", Schedule, string, string]>([
    ["an hour that is short", "next", night, "2024-03-30T23:30:00Z", "2024-03-31T02:00:00Z"],
    ["an hour that is short, from behind", "latest", morning, "2024-03-31T03:30:00Z", "2024-03-30T23:59:00Z"],
    ["an hour that is long", "next", night, "2024-10-26T22:30:00Z", "2024-10-27T03:00:00Z"],
    [
      "a time that an interval has in the first pass only",
      "next",
      { cron: "*/10 2 * * *", ...paris, except: [daily, { cron: "0-20/10,40,50 2 * * *" }] },
      "2024-10-26T12:00:00Z",
      "2024-10-27T01:30:00Z",
    ],
    [
      "a time that an interval has later, as its clock skips it",
      "next",
      { ...daily, ...paris, except: [{ cron: "30 2 * * *" }] },
      "2024-02-01T00:00:00Z",
      "2024-03-31T01:00:00Z",
    ],
    [
      "the first instant of a clock's year, from behind",
      "latest",
      {
        cron: "* * * 7-12 *",
        timezone: "America/New_York",
        except: [{ calendar: "0..11:*", timezone: "UTC" }, { cron: "* */2 * * *" }],
      },
      "1972-01-07T00:44:30Z",
      "1971-12-31T22:59:00Z",
    ],
  ])("%s", (_what, towards, schedule, at, found) => {
    expect(new Date(compileSchedule(schedule)[towards](Date.parse(at))!).toJSON()).toBe(
      new Date(found).toJSON(),
    );
  });
});
