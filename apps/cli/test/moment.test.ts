import * as sdk from "@carillon/sdk/schedule";
import { describe, expect, it } from "vitest";
import { readMoment, zoneOfSchedule } from "../src/moment.js";

const now = Date.parse("2026-11-21T12:00:00Z");
const read = (text: string, zone = "Europe/Berlin") => {
  const { time, note } = readMoment(sdk, text, { zone, now, field: "TIME" });
  return [new Date(time).toISOString(), note];
};

describe("a time argument", () => {
  it.each([
    ["09:00", "2026-11-21T08:00:00.000Z"],
    ["9:00", "2026-11-21T08:00:00.000Z"],
    ["09:00:30.250", "2026-11-21T08:00:30.250Z"],
    ["today", "2026-11-20T23:00:00.000Z"],
    ["yesterday 09:00", "2026-11-20T08:00:00.000Z"],
    ["Yesterday  9:00", "2026-11-20T08:00:00.000Z"],
    ["tomorrow 00:00", "2026-11-21T23:00:00.000Z"],
    ["2026-07-01", "2026-06-30T22:00:00.000Z"],
    ["2026-07-01 09:00", "2026-07-01T07:00:00.000Z"],
    ["2026-07-01T09:00", "2026-07-01T07:00:00.000Z"],
    ["2026-07-01T09:00:00Z", "2026-07-01T09:00:00.000Z"],
    ["2026-07-01T09:00:00+09:00", "2026-07-01T00:00:00.000Z"],
    ["1782896400000", "2026-07-01T09:00:00.000Z"],
    ["now", "2026-11-21T12:00:00.000Z"],
  ])("accepts %j", (text, expected) => expect(read(text)).toEqual([expected, undefined]));

  it("may be the epoch itself, and the first hours of 1970 east of it", () => {
    expect(read("1970-01-01", "UTC")).toEqual(["1970-01-01T00:00:00.000Z", undefined]);
    expect(read("1970-01-01", "Europe/Berlin")).toEqual(["1969-12-31T23:00:00.000Z", undefined]);
    expect(read("1970-01-01", "Pacific/Kiritimati")).toEqual(["1970-01-01T10:40:00.000Z", undefined]);
  });

  it("is a time of the zone's day", () => {
    expect(read("00:30", "Pacific/Auckland")).toEqual(["2026-11-21T11:30:00.000Z", undefined]);
    expect(read("yesterday 23:00", "America/Los_Angeles")).toEqual(["2026-11-21T07:00:00.000Z", undefined]);
  });

  it("moves to the end of a clock gap, as in schedules, with a note", () => {
    const [time, note] = read("2026-03-29 02:30");
    expect(time).toBe("2026-03-29T01:00:00.000Z");
    expect(note).toContain("the clock skips 2026-03-29 02:30");
    expect(note).toContain("2026-03-29T03:00:00+02:00");
  });

  it("is the first of two equal clock times, with a note on the second", () => {
    const [time, note] = read("2026-10-25 02:30");
    expect(time).toBe("2026-10-25T00:30:00.000Z");
    expect(note).toContain("2026-10-25T02:30:00+01:00");
  });

  it.each([
    "",
    "noon",
    "25:00",
    "09:60",
    "2026-02-30 09:00",
    "2026-13-01",
    "0026-01-01 03:00",
    "0099-12-31",
    "1969-12-31 09:00",
    "09",
    "12345",
    "yesterdayx",
    "today today",
  ])("refuses %j", (text) => expect(() => read(text)).toThrow(/^TIME: /));

  it("needs an existing zone", () => {
    expect(() => read("09:00", "Mars/Base")).toThrow(
      expect.objectContaining({ report: expect.objectContaining({ code: "INVALID_TIMEZONE" }) }),
    );
  });
});

describe("a time that may be a duration", () => {
  const options = { zone: "UTC", now, field: "since" };
  const since = (text: string) => readMoment(sdk, text, { ...options, duration: "before" }).time;

  it("is a duration before now, or a time", () => {
    expect(since("2h")).toBe(now - 7_200_000);
    expect(since("1d12h")).toBe(now - 36 * 3_600_000);
    expect(since("PT5M")).toBe(now - 300_000);
    expect(since("yesterday")).toBe(Date.parse("2026-11-20T00:00:00Z"));
    expect(since("2026-11-01T00:00:00Z")).toBe(Date.parse("2026-11-01T00:00:00Z"));
  });

  it("is a duration from now on, to the next full second", () => {
    const until = (text: string, at: number) =>
      readMoment(sdk, text, { ...options, now: at, duration: "from" }).time;
    expect(until("2h", now)).toBe(now + 7_200_000);
    expect(until("2h", now + 1)).toBe(now + 7_201_000);
    expect(until("yesterday", now)).toBe(Date.parse("2026-11-20T00:00:00Z"));
  });

  it("is refused with the forms that it takes", () => {
    expect(() => since("soon")).toThrow(/Give a duration before now, 2h; or ISO 8601/);
    expect(() => readMoment(sdk, "2h", options)).toThrow(/Give ISO 8601/);
  });

  it.each(["2 h", "2x", "0s", "soon"])("is not %j", (text) => expect(() => since(text)).toThrow(/^since: /));
});

it.each<[sdk.Schedule, string]>([
  [{ cron: "0 9 * * *", timezone: "Europe/Berlin" }, "Europe/Berlin"],
  [{ cron: "0 9 * * *" }, "UTC"],
  [{ calendar: "09:00 Asia/Tokyo" }, "Asia/Tokyo"],
  [{ every: "10s" }, "UTC"],
  [{ at: "2026-01-01T00:00:00Z" }, "UTC"],
  [{ cron: "0 9 * * *", timezone: "Europe/Berlin", except: [{ named: "holidays" }] }, "Europe/Berlin"],
  [
    {
      any: [
        { cron: "0 9 * * *", timezone: "Asia/Tokyo" },
        { cron: "0 8 * * *", timezone: "Asia/Tokyo" },
      ],
    },
    "Asia/Tokyo",
  ],
  [{ any: [{ cron: "0 9 * * *", timezone: "Asia/Tokyo" }, { every: "1h" }] }, "UTC"],
])("the clock of %j is %s", (schedule, zone) => expect(zoneOfSchedule(sdk, schedule)).toBe(zone));
