import { previewSchedule, type Schedule } from "@carillon/core";
import { previewYear } from "@carillon/core/internal";
import { expect, it } from "vitest";

const timezone = "Europe/Berlin";
const from = Date.parse("2026-11-26T17:00:00Z");
const context = { calendars: new Map([["holidays", ["*-12-25", "2027-01-01"]]]) };
/** Days by their date in the zone: those that `say` something. */
const marked = (schedule: Schedule, zone = timezone) =>
  [...previewYear(schedule, { from, context })]
    .filter(({ excluded, notes }) => excluded > 0 || notes.length > 0)
    .map(({ start, times, excluded, by, notes }) => [
      new Intl.DateTimeFormat("sv", { timeZone: zone }).format(start),
      times,
      ...(excluded ? [excluded, by] : []),
      ...notes.map(({ code }) => code),
    ]);

it("a year has its excluded days, and the nights of both clock changes with lost, moved and doubled times", () => {
  const night = { timezone, except: [{ named: "holidays" }] };
  const holidays = [
    ["2026-12-25", 0, 1, "holidays"],
    ["2027-01-01", 0, 1, "holidays"],
  ];
  expect(marked({ ...night, calendar: "02:30", dst: { gap: "skip", overlap: "both" } })).toEqual([
    ...holidays,
    ["2027-03-28", 0, "DAY_LENGTH", "LOST"],
    ["2027-10-31", 2, "DAY_LENGTH", "REPEATED", "REPEATED"],
  ]);
  expect(marked({ ...night, cron: "30 2 * * *" }).slice(2)).toEqual([
    ["2027-03-28", 1, "DAY_LENGTH", "MOVED"],
    ["2027-10-31", 1, "DAY_LENGTH", "REPEATED"],
  ]);
  const two = [
    { cron: "30 2 * * *", timezone },
    { cron: "30 2 * * *", timezone: "America/New_York" },
  ];
  expect(marked({ any: two }, "UTC")).toEqual([
    ["2027-03-14", 2, "MOVED"],
    ["2027-03-28", 2, "MOVED"],
    ["2027-10-31", 2, "REPEATED"],
  ]);
});

it.each<[string, Schedule, number[]]>([
  ["each minute", { cron: "* * * * *" }, [25, 25, 25]],
  ["each hour", { every: "1h" }, [24, 24, 24]],
  ["twice on some days", { cron: "0 9,17 * * 5", timezone }, [0, 2, 0]],
  ["with an end to come", { every: "12h", maxRuns: 3 }, [2, 1, 0]],
  ["once", { at: "2026-11-27T23:30:00Z" }, [0, 1, 0]],
  ["never by itself", { manual: true }, [0, 0, 0]],
])("the times of each day are counted: %s", (_, schedule, first) => {
  const days = [...previewYear(schedule, { from })];
  expect(days).toHaveLength(366);
  expect(days.slice(0, 3).map(({ times }) => times)).toEqual(first);
});

it("the days together have the times of the preview", () => {
  const schedule = {
    any: [
      { calendar: "Mon..Fri 02:30", timezone },
      { cron: "0 12 1 * *", timezone },
    ],
  };
  const days = [...previewYear(schedule, { from, context })];
  const [start, end] = [days[0]?.start ?? 0, (days.at(-1)?.start ?? 0) + 86_400_000];
  const { times } = previewSchedule(schedule, { from: start - 1, count: 400 });
  expect(days.reduce((sum, { times }) => sum + times, 0)).toBe(times.filter(({ time }) => time < end).length);
});
