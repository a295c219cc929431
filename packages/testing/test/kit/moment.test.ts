import { expect, it } from "vitest";
import { lengthOf, timeOf, timeText } from "../../src/kit/moment.js";

const START = Date.parse("2026-01-01T06:00:00Z");

it.each([
  ["00:35", "2026-01-01T06:00:35Z"],
  ["90:00", "2026-01-01T07:30:00Z"],
  ["1:02:03", "2026-01-01T07:02:03Z"],
  ["48:00:00.5", "2026-01-03T06:00:00.500Z"],
  ["2026-01-05", "2026-01-05T00:00:00Z"],
  ["2026-01-05T09:00:00Z", "2026-01-05T09:00:00Z"],
  ["2026-01-05T09:00:00.25+02:00", "2026-01-05T07:00:00.250Z"],
  [0, "1970-01-01T00:00:00Z"],
  [new Date(5), "1970-01-01T00:00:00.005Z"],
])("%s is a moment", (moment, expected) => {
  expect(timeText(timeOf(moment, START, "x"))).toBe(expected);
});

it.each(["", "1:60", "now", "2026-01-05T09:00:00", "2026-13-01", Number.NaN, 0.5])(
  "%j is not a moment",
  (moment) => {
    expect(() => timeOf(moment, START, "when")).toThrow(/^when: .* is not a time/);
  },
);

it.each([
  [0, 0],
  [1_500, 1_500],
  ["3 days", 259_200_000],
  ["1 day, 2 hours", 93_600_000],
  ["1 week 30 minutes", 606_600_000],
  ["5 min", 300_000],
  ["10 secs", 10_000],
  ["90s", 90_000],
  ["1h30m", 5_400_000],
  ["PT5M", 300_000],
])("%s is a span", (span, ms) => {
  expect(lengthOf(span, "x")).toBe(ms);
});

it.each([-1, 0.5, Number.NaN, undefined, null, { days: 3 }, 5n])("%s is not a span", (span) => {
  expect(() => lengthOf(span as number, "span")).toThrow(/^span: got .*\. Give whole milliseconds/);
});
