import { expect, it } from "vitest";
import { ahead, back } from "../ui/src/lib/meant.js";

it("times ahead are of the wall clock: this evening or the next one, tomorrow, the next Monday", () => {
  const at = (now: string) => Object.values(ahead(now, "in an hour"));
  // A Thursday.
  expect(at("2026-11-26T17:59")).toEqual([
    "in an hour",
    "2026-11-26T18:00",
    "2026-11-27T08:00",
    "2026-11-30T08:00",
  ]);
  expect(at("2026-12-31T18:00").slice(1)).toEqual([
    "2027-01-01T18:00",
    "2027-01-01T08:00",
    "2027-01-04T08:00",
  ]);
  expect(ahead("2026-11-29T12:00", "").monday).toBe("2026-11-30T08:00");
  expect(ahead("2026-11-30T07:00", "").monday).toBe("2026-12-07T08:00");
});

it("ranges of the past are of the wall clock, also over a change of the clock", () => {
  expect(back("2027-03-29T09:30")).toEqual({
    day: { from: "2027-03-28T09:30" },
    night: { from: "2027-03-28T20:00", to: "2027-03-29T08:00" },
    yesterday: { from: "2027-03-28T00:00", to: "2027-03-29T00:00" },
    week: { from: "2027-03-22T09:30" },
  });
});
