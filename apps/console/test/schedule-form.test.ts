import { type Schedule, scheduleSchema } from "@carillon/sdk";
import { describe, expect, test } from "vitest";
import { editSchedule, type ScheduleEdit, type ScheduleForm, showSchedule } from "../src/schedule-form.js";

const schedules: Array<[Schedule, ScheduleForm]> = [
  [{ cron: "0 3 * * *" }, { pattern: "0 3 * * *", tz: "UTC" }],
  [
    { cron: "0 3 * * *", timezone: "Europe/Berlin" },
    { pattern: "0 3 * * *", tz: "Europe/Berlin" },
  ],
  [
    { cron: "0 3 * * *", timezone: "UTC" },
    { pattern: "0 3 * * *", tz: "UTC" },
  ],
  [{ every: "90s" }, { every: 90_000 }],
  [{ every: "60s" }, { every: 60_000 }],
  [{ every: "1h", origin: "2026-01-01T00:10:00Z" }, { every: 3_600_000 }],
  [{ at: "2030-01-01T00:00:00+01:00" }, { pattern: "at 2030-01-01T00:00:00+01:00" }],
  [{ at: 1_893_456_000_000 }, { pattern: "at 2030-01-01T00:00:00.000Z" }],
  [{ calendar: "Mon *-*-* 03:00" }, { pattern: "calendar Mon *-*-* 03:00", tz: "UTC" }],
  [
    { every: "1 month", origin: "2026-01-31T08:00:00Z", timezone: "Europe/Berlin" },
    { pattern: "every 1 month", tz: "Europe/Berlin" },
  ],
  [{ any: [{ cron: "0 3 * * *" }, { every: "1h" }] }, { pattern: "any of (0 3 * * *; 1h)" }],
  [
    {
      every: "1h",
      start: "2026-01-01T00:00:00Z",
      end: "2099-01-01T00:00:30+01:00",
      maxRuns: 5,
      jitter: "30s",
    },
    { every: 3_600_000, startDate: 1_767_225_600_000, endDate: 4_070_905_230_000, limit: 5 },
  ],
];

/** Fields that every kind of schedule takes. */
const limits = {
  start: "2026-01-01T00:00:00Z",
  end: "2099-01-01T00:00:00Z",
  jitter: "30s",
  maxRuns: 5,
};
const christmas = { calendar: "*-12-25" };
const kinds: Array<[string, Schedule, ScheduleEdit]> = [
  ["cron", { cron: "0 3 * * *" }, { pattern: "0 3 * * *" }],
  ["calendar", { calendar: "Mon *-*-* 03:00" }, { pattern: "calendar Mon *-*-* 03:00" }],
  ["every", { every: "1h" }, { every: 3_600_000 }],
  ["every by the calendar", { every: "1 month" }, { pattern: "every 1 month" }],
  ["at", { at: "2030-01-01T00:00:00Z" }, { pattern: "at 2030-01-01T00:00:00Z" }],
];

describe("a schedule in Bull Board's form", () => {
  test.each(schedules)("%o is shown as %o", (schedule, form) => {
    expect(showSchedule(schedule, "a")).toEqual(form);
  });

  test.each(schedules)("%o saved as it is shown stays the same", (schedule) => {
    expect(editSchedule(schedule, showSchedule(schedule, "a"), "a")).toEqual(schedule);
  });

  const edits: Array<[Schedule, ScheduleEdit, Schedule]> = [
    [
      { cron: "0 3 * * *" },
      { pattern: "0 4 * * *", tz: "Asia/Tokyo" },
      { cron: "0 4 * * *", timezone: "Asia/Tokyo" },
    ],
    [{ cron: "0 3 * * *", timezone: "Asia/Tokyo" }, { pattern: "0 3 * * *" }, { cron: "0 3 * * *" }],
    [
      { every: "1h", origin: "2026-01-01T00:10:00Z" },
      { every: 1500 },
      { every: "1500ms", origin: "2026-01-01T00:10:00Z" },
    ],
    [{ cron: "0 3 * * *", timezone: "Asia/Tokyo" }, { every: 86_400_000 }, { every: "1d" }],
    [{ every: "1h" }, { pattern: "0 4 * * *" }, { cron: "0 4 * * *" }],
    [{ at: 5 }, { pattern: "at 2031-01-01T00:00:00Z" }, { at: "2031-01-01T00:00:00Z" }],
    [{ at: 5 }, { pattern: "0 0 4 * * *" }, { cron: "0 0 4 * * *" }],
    [{ every: "1 month" }, { pattern: "every 2 months" }, { every: "2 months" }],
    [
      { calendar: "Mon *-*-* 03:00", timezone: "Asia/Tokyo" },
      { pattern: "calendar Tue *-*-* 03:00", tz: "Asia/Tokyo" },
      { calendar: "Tue *-*-* 03:00", timezone: "Asia/Tokyo" },
    ],
  ];
  test.each(edits)("%o edited by %o becomes %o", (before, edit, after) => {
    expect(editSchedule(before, edit, "a")).toEqual(after);
  });

  const refusals: Array<[Schedule, ScheduleEdit, object]> = [
    [{ at: 5 }, { pattern: "tomorrow" }, { code: "INVALID_SCHEDULE", field: "schedule.at" }],
    [
      { calendar: "Mon *-*-* 03:00" },
      { pattern: "Mon *-*-* 03:00" },
      {
        code: "INVALID_SCHEDULE",
        field: "schedule.calendar",
        remedy: expect.stringContaining("calendar Mon *-*-* 03:00"),
      },
    ],
    [{ every: "1h" }, { every: 0.5 }, { code: "INVALID_SCHEDULE", field: "schedule.every" }],
    [{ every: "1h" }, { every: 1000, endDate: 1e300 }, { code: "INVALID_SCHEDULE", field: "schedule.end" }],
    [
      { any: [{ every: "1h" }] },
      { every: 1000, limit: 3 },
      { code: "INVALID_SCHEDULE", field: "schedule.any" },
    ],
  ];
  test.each(refusals)("%o edited by %o is refused", (before, edit, error) => {
    expect(() => editSchedule(before, edit, "a")).toThrow(expect.objectContaining(error));
  });

  const changes = kinds.flatMap(([from, before]) =>
    kinds.filter(([to]) => to !== from).map(([to, after, edit]) => ({ from, to, before, after, edit })),
  );
  test.each(changes)("$from edited into $to keeps what every kind has", ({ before, after, edit }) => {
    const bounds = { ...limits, except: [christmas] };
    const edited = editSchedule({ ...before, ...bounds }, edit, "a");
    expect(edited).toEqual({ ...after, ...bounds });
    expect(scheduleSchema.parse(edited)).toBeDefined();
  });

  const dst = { gap: "skip", overlap: "both" } as const;
  const clocks: Array<[Schedule, ScheduleEdit, Schedule]> = [
    [
      {
        cron: "0 3 * * *",
        timezone: "Europe/Berlin",
        except: [
          christmas,
          { cron: "* 12 * * *", timezone: "Asia/Tokyo" },
          { named: "holidays" },
          { at: "2030-01-01T00:00:00Z" },
          { every: "90m" },
          { every: "1 month" },
        ],
      },
      { every: 3_600_000 },
      {
        every: "1h",
        except: [
          { ...christmas, timezone: "Europe/Berlin" },
          { cron: "* 12 * * *", timezone: "Asia/Tokyo" },
          { named: "holidays", timezone: "Europe/Berlin" },
          { at: "2030-01-01T00:00:00Z" },
          { every: "90m" },
          { every: "1 month", timezone: "Europe/Berlin" },
        ],
      },
    ],
    [
      { every: "1h", except: [christmas] },
      { pattern: "0 3 * * *", tz: "Europe/Berlin" },
      { cron: "0 3 * * *", timezone: "Europe/Berlin", except: [{ ...christmas, timezone: "UTC" }] },
    ],
    [
      { calendar: "Mon *-*-* 03:00 Europe/Berlin", except: [christmas] },
      { every: 3_600_000 },
      { every: "1h", except: [{ ...christmas, timezone: "Europe/Berlin" }] },
    ],
    // The form accepts the same zones as the engine: any spelling of UTC, and UTC for a timestamp followed by another
    // zone.
    [
      { calendar: "Mon *-*-* 03:00 utc", timezone: "Europe/Berlin", except: [christmas] },
      { every: 3_600_000 },
      { every: "1h", except: [christmas] },
    ],
    [
      { calendar: "@1893456000 Asia/Tokyo", except: [christmas] },
      { every: 3_600_000 },
      { every: "1h", except: [christmas] },
    ],
    [
      { cron: "0 3 * * *", except: [christmas] },
      { pattern: "calendar 03:00 Europe/Berlin", tz: "UTC" },
      { calendar: "03:00 Europe/Berlin", except: [{ ...christmas, timezone: "UTC" }] },
    ],
    [
      { cron: "0 3 * * *", timezone: "Europe/Berlin", dst, except: [christmas] },
      { pattern: "calendar 03:00", tz: "Europe/Berlin" },
      { calendar: "03:00", timezone: "Europe/Berlin", dst, except: [christmas] },
    ],
    [{ cron: "0 3 * * *", dst }, { every: 3_600_000 }, { every: "1h" }],
  ];
  test.each(clocks)("%o edited by %o: exclusions go on by the same clock", (before, edit, after) => {
    expect(editSchedule(before, edit, "a")).toEqual(after);
    expect(scheduleSchema.parse(after)).toBeDefined();
  });

  const end = "2099-01-01T00:00:30Z";
  const limited: Array<[Schedule, ScheduleEdit, Schedule]> = [
    [
      { every: "1h" },
      { every: 3_600_000, limit: 3, endDate: 4_070_908_800_000 },
      { every: "1h", maxRuns: 3, end: "2099-01-01T00:00:00.000Z" },
    ],
    [
      { every: "1h", maxRuns: 5, end },
      { every: 60_000, limit: 9, endDate: 4_102_444_800_000 },
      { every: "1m", maxRuns: 9, end: "2100-01-01T00:00:00.000Z" },
    ],
    // The page's field has no seconds.
    [
      { every: "1h", end },
      { pattern: "0 3 * * *", endDate: 4_070_908_800_000 },
      { cron: "0 3 * * *", end },
    ],
    [
      { any: [{ every: "1h" }], maxRuns: 5 },
      { ...showSchedule({ any: [{ every: "1h" }], maxRuns: 5 }, "a"), limit: 6 },
      { any: [{ every: "1h" }], maxRuns: 6 },
    ],
    [
      { at: "2030-01-01T00:00:00Z" },
      { pattern: "at 2030-01-01T00:00:00Z", limit: 1 },
      { at: "2030-01-01T00:00:00Z", maxRuns: 1 },
    ],
  ];
  test.each(limited)("%o limited by %o becomes %o", (before, edit, after) => {
    expect(editSchedule(before, edit, "a")).toEqual(after);
  });
});
