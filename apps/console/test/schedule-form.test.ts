import type { Schedule } from "@carillon/sdk";
import { describe, expect, test } from "vitest";
import { editSchedule, type ScheduleEdit, type ScheduleForm, showSchedule } from "../src/schedule-form.js";

const schedules: Array<[Schedule, ScheduleForm]> = [
  [{ cron: "0 3 * * *" }, { pattern: "0 3 * * *", tz: "UTC" }],
  [
    { cron: "0 3 * * *", timezone: "Europe/Berlin" },
    { pattern: "0 3 * * *", tz: "Europe/Berlin" },
  ],
  [{ every: "90s" }, { every: 90_000 }],
  [{ every: "1h", origin: "2026-01-01T00:10:00Z" }, { every: 3_600_000 }],
  [{ at: "2030-01-01T00:00:00+01:00" }, { pattern: "at 2030-01-01T00:00:00+01:00" }],
  [{ at: 1_893_456_000_000 }, { pattern: "at 2030-01-01T00:00:00.000Z" }],
  [{ calendar: "Mon *-*-* 03:00" }, { pattern: "calendar Mon *-*-* 03:00", tz: "UTC" }],
  [
    { every: "1 month", origin: "2026-01-31T08:00:00Z", timezone: "Europe/Berlin" },
    { pattern: "every 1 month", tz: "Europe/Berlin" },
  ],
  [{ any: [{ cron: "0 3 * * *" }, { every: "1h" }] }, { pattern: "any of (0 3 * * *; 1h)" }],
];

describe("a schedule in Bull Board's form", () => {
  test.each(schedules)("%o is shown as %o", (schedule, form) => {
    expect(showSchedule(schedule)).toEqual(form);
  });

  test.each(schedules)("%o saved as it is shown stays the same", (schedule) => {
    expect(editSchedule(schedule, showSchedule(schedule))).toEqual(schedule);
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
    expect(editSchedule(before, edit)).toEqual(after);
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
    [{ every: "1h" }, { every: 1000, limit: 3 }, { code: "INVALID_OPTION", field: "limit" }],
    [{ every: "1h" }, { every: 1000, endDate: 3 }, { code: "INVALID_OPTION", field: "endDate" }],
  ];
  test.each(refusals)("%o edited by %o is refused", (before, edit, error) => {
    expect(() => editSchedule(before, edit)).toThrow(expect.objectContaining(error));
  });
});
