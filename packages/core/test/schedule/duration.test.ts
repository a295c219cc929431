import { expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import { isCarillonError } from "../../src/errors.js";
import { formatDuration, MAX_DURATION, parseDuration } from "../../src/schedule/index.js";

test.each([
  ["90s", 90_000],
  ["1h30m", 5_400_000],
  ["250ms", 250],
  ["1m1ms", 60_001],
  ["2w3d", 17 * 86_400_000],
  ["PT5M", 300_000],
  ["P1D", 86_400_000],
  ["P2W", 14 * 86_400_000],
  ["P1DT2H3M4S", 93_784_000],
  ["3660d", MAX_DURATION],
  [90_000, 90_000],
  [MAX_DURATION, MAX_DURATION],
])("%s", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

const bad =
  "|0s|PT0S|-5m|5|1.5h|1h abc|1h 30m|30m1h|1h1h|h|P|PT|P1M|P1Y|1y|1mo|3 months|1M|5S|1e3s|٣s|3661d".split(
    "|",
  );

test.each([...bad, "1".repeat(1_000_000), 0, -1, 1.5, MAX_DURATION + 1, null, undefined, {}])(
  "%j is refused",
  (text) => {
    try {
      parseDuration(text as string);
    } catch (error) {
      expect(isCarillonError(error, "INVALID_DURATION")).toBe(true);
      return;
    }
    throw new Error("accepted");
  },
);

test.each([
  ["1 hour", "1h"],
  ["30 minutes", "30m"],
  ["10min", "10m"],
  ["15sec", "15s"],
  ["15 MINUTES", "15m"],
  ["5 M", "5m"],
  ["1h 30m", "1h30m"],
  ["1 hour and 30 minutes", "1h30m"],
  ["every 5 minutes", "5m"],
  ["500 millis", "500ms"],
])("%j leads to %s", (text, near) => {
  expect(() => parseDuration(text)).toThrow(`Did you mean ${near}?`);
});

test.each(["3 months", "1 Year", "P1M"])("%j counts months", (text) => {
  expect(() => parseDuration(text)).toThrow("months or years");
});

test("parsed durations are formatted as they were written", () => {
  expect([0, 250, 90_000, 5_400_000, 90_061_001, -1_000].map(formatDuration)).toEqual([
    "0s",
    "250ms",
    "1m30s",
    "1h30m",
    "1d1h1m1s1ms",
    "-1s",
  ]);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MAX_DURATION }), (ms) => parseDuration(formatDuration(ms)) === ms),
  );
});
