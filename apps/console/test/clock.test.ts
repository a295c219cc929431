import { expect, test } from "vitest";
import * as time from "../ui/src/lib/clock.js";

const iso = (at: number) => new Date(at).toISOString();

test.each([
  ["2026-11-28T06:00", "Asia/Kolkata", "2026-11-28T00:30:00.000Z"],
  ["2026-11-28T06:00:30", "America/Sao_Paulo", "2026-11-28T09:00:30.000Z"],
  ["2026-11-28T06:00", "UTC", "2026-11-28T06:00:00.000Z"],
  // The first of two, and half an hour after an hour that the clock skips.
  ["2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z"],
  ["2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:30:00.000Z"],
  ["2026-03-29T12:00", "Europe/Berlin", "2026-03-29T10:00:00.000Z"],
  ["2026-03-28T12:00", "Europe/Berlin", "2026-03-28T11:00:00.000Z"],
])("a field with %s on the clock of %s means %s", (text, zone, at) => {
  expect(iso(time.typedTime(text, zone))).toBe(at);
  if (!text.startsWith("2026-03-29T02")) expect(time.fieldTime(Date.parse(at), zone)).toBe(text.slice(0, 16));
});

test("a text that is no time is none", () => {
  expect(time.typedTime("soon", "UTC")).toBeNaN();
  expect(time.startOf("soon", "UTC")).toBeUndefined();
  expect(iso(time.startOf("2026-11-28", "Asia/Kolkata")!)).toBe("2026-11-27T18:30:00.000Z");
});

test("a time of a task has the task's own beside the reader's, unless they are the same", () => {
  const at = Date.parse("2026-11-29T00:30:00Z");
  const shown = (own: string | undefined) => time.bothTimes(at, "Europe/Berlin", at - 86_400_000, own);
  expect(shown("Asia/Kolkata")).toBe("Sun 29 Nov, 01:30 (06:00 in Kolkata)");
  expect(shown("America/New_York")).toBe("Sun 29 Nov, 01:30 (Sat 19:30 in New York)");
  expect(shown("Europe/Paris")).toBe("Sun 29 Nov, 01:30");
  expect(shown(undefined)).toBe("Sun 29 Nov, 01:30");
});
