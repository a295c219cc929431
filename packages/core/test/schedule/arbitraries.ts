import fc from "../../../../test/fast-check.js";
import type {
  Schedule,
  ScheduleContext,
  ScheduleExclusion,
  SimpleSchedule,
} from "../../src/schedule/index.js";

/* Random schedules: members, unions, exclusions and bounds, near clock changes. */

const ZONES = [
  "UTC",
  "Europe/Paris",
  "America/New_York",
  "Australia/Lord_Howe",
  "Asia/Kolkata",
  "Africa/Cairo",
];
/** Starts near clock changes of most of these zones. */
export const STARTS = [
  "2024-03-08",
  "2024-03-28",
  "2024-04-04",
  "2024-04-24",
  "2024-10-03",
  "2024-10-25",
  "2024-11-01",
];
export const CALENDARS = new Map([
  ["holidays", ["2024-03-29", "2024-10-28", "*-04-01", "*-*-05 12..14:*", "2024-11-03"]],
]);
export const context: ScheduleContext = { calendars: CALENDARS };

export const pick = <T>(...values: T[]) => fc.constantFrom(...values);
const zone = pick(...ZONES);
const maybeZone = fc.option(zone, { nil: undefined });
const minute = pick("*/5", "*/10", "0", "30", "0,45", "5-20/5", "*");
const hour = pick("*", "*/2", "0", "2", "1-3", "23", "8-17");
const cron = fc
  .record({ m: minute, h: hour, d: pick("*", "*", "1-15", "L"), w: pick("*", "*", "1-5", "0") })
  .map(({ m, h, d, w }) => `${m} ${h} ${d} * ${w}`);
const calendar = pick("*:0/15", "02:30", "Mon..Fri 9..17:0/20", "*-*-* 00:00", "Sun 1..3:*", "*:0/10:0/20");
const days = pick("Sat,Sun", "*-10-27", "Sun", "*-*-1/2", "2024-*-*", "*-*-*", "*-*~1", "*-04-*");
const dst = fc.option(
  fc.record(
    { gap: pick("run-after" as const, "skip" as const), overlap: pick("first" as const, "both" as const) },
    { requiredKeys: [] },
  ),
  { nil: undefined },
);
const simple: fc.Arbitrary<SimpleSchedule> = fc.oneof(
  fc.record({ cron, timezone: zone, dst }),
  fc.record({ cron, timezone: zone, dialect: pick("cron-parser" as const) }),
  fc.record({ calendar, timezone: zone, dst }),
  fc.record({ every: pick("7m", "1h", "2m", "90m", "5m20s") }),
  fc.record({
    every: pick("1 day", "2 days", "1 week"),
    timezone: zone,
    origin: pick("2024-01-31T01:30:00Z"),
  }),
  fc.record({ at: pick("2024-03-31T01:00:00Z", "2024-10-27T00:30:00Z") }),
);
export const bounds = fc.record(
  {
    start: pick("2024-03-30T01:30:00Z", "2024-10-20T00:00:00Z"),
    end: pick("2024-11-02T12:00:00Z", "2025-01-01T00:00:00Z"),
  },
  { requiredKeys: [] },
);
const exclusion: fc.Arbitrary<ScheduleExclusion> = fc
  .tuple(
    fc.oneof(
      fc.record({ cron, timezone: maybeZone }),
      fc.record({ cron, timezone: maybeZone, dialect: pick("cron-parser" as const) }),
      fc.record({ calendar, timezone: maybeZone }),
      fc.record({ calendar: days, timezone: maybeZone }),
      fc.record({ calendar: days, timezone: maybeZone }),
      fc.record({ named: pick("holidays"), timezone: maybeZone }),
      fc.record({ every: pick("2h", "1 day") }),
      fc.record({ at: pick("2024-03-31T01:00:00Z") }),
    ),
    fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, bounds),
  )
  .map(([spec, limits]) => ({ ...spec, ...limits }));
export const exclusions = fc.array(exclusion, { maxLength: 3 });
const member = fc
  .tuple(simple, exclusions)
  .map(([one, except]) => (except.length ? { ...one, except } : one));
export const schedule: fc.Arbitrary<Schedule> = fc.oneof(
  member,
  fc.tuple(member, bounds).map(([one, limits]) => ({ ...one, ...limits })),
  fc
    .tuple(fc.array(member, { minLength: 1, maxLength: 3 }), exclusions, fc.oneof(fc.constant({}), bounds))
    .map(([any, except, limits]) => ({ any, except, ...limits })),
);
