import { expect, it } from "vitest";
import { hoursOf, levelOf, limitsOf } from "../ui/src/lib/heat.js";

const at = (text: string) => Date.parse(`2026-11-26T${text}Z`);

it("a row of the heat map begins at a full hour of its zone, also if that is a half hour of UTC", () => {
  const counts = Array.from({ length: 90 }, (_, i) => i % 2);
  const rows = (zone: string) =>
    hoursOf(at("10:10"), counts, zone).map(({ at, within, sum }) => [at, within.length, sum]);
  expect(rows("UTC")).toEqual([
    [at("10:00"), 50, 25],
    [at("11:00"), 40, 20],
  ]);
  // 15:40 and 15:55 there.
  expect(rows("Asia/Kolkata")[0]).toEqual([at("09:30"), 20, 10]);
  expect(rows("Asia/Kathmandu")[0]).toEqual([at("09:15"), 5, 2]);
});

it("a minute far above the others has a shade of its own", () => {
  const limits = limitsOf([0, 60, 62, 61, 60, 130, 434]);
  expect(limits).toEqual([62, 155, 248, 341, 434]);
  expect([0, 60, 130, 434].map((count) => levelOf(count, limits))).toEqual([0, 1, 2, 5]);
  expect(limitsOf([0, 7, 7])).toEqual([7]);
  expect(levelOf(7, [7])).toBe(5);
  expect(limitsOf([0])).toEqual([]);
});
