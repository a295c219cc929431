import { expect, test } from "vitest";
import { compareCron } from "../src/schedule.js";

const from = "2026-01-01T00:00:00Z";
const day = (n: number) => Date.UTC(2026, 0, n);

test("the times that only one side has are listed", () => {
  const found = compareCron("0 0 */10 * 1", { from, count: 5 });
  // Carillon requires both: day 1, 11, 21 or 31, and a Monday.
  expect(found).toEqual({
    differences: [5, 11, 12, 19, 21].map((n) => ({ time: day(n), only: "cron-parser" })),
    compared: 5,
    until: day(21),
  });
  const most = compareCron("0 0 */10 * 1", { from });
  expect(most.differences).toHaveLength(10);
});

test("equal expressions have no difference", () => {
  const same = { differences: [], compared: 1_000, until: expect.any(Number) };
  expect(compareCron("0 9 * * 1-5", { timezone: "Europe/Berlin", from })).toEqual(same);
  expect(compareCron("0 0 */10 * 1", { from, dialect: "cron-parser" })).toEqual(same);
});

test("expressions that one side refuses, or that have no times there, are reported", () => {
  expect(compareCron("@weekdays").refused).toMatchObject({ by: "carillon" });
  expect(compareCron("0 0 * * 0,7").refused).toMatchObject({ by: "cron-parser" });
  const never = compareCron("0 0 31 4,6 *", { from });
  expect(never).toMatchObject({ compared: 0, differences: [], ended: { after: day(1) } });
});

test.each([
  ["x", {}, "INVALID_SCHEDULE", "schedule.cron"],
  ["* * * * *", { timezone: "Mars" }, "INVALID_TIMEZONE", "schedule.timezone"],
  ["* * * * *", { tz: "UTC" }, "INVALID_OPTION", "tz"],
  ["* * * * *", { from: "noon" }, "INVALID_OPTION", "from"],
  ["* * * * *", { count: 0 }, "INVALID_OPTION", "count"],
  ["* * * * *", { dialect: "cron-parse" }, "INVALID_SCHEDULE", "schedule.dialect"],
])("%s with %j is refused: %s", (expression, options, code, field) => {
  let thrown: unknown;
  try {
    compareCron(expression, options as object);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ code, field });
});
