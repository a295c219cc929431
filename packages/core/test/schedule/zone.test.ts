import { expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import { segmentAt, zoneOf } from "../../src/schedule/zone/offsets.js";

/* Compares with Intl: far years borrow the table of a nearer one, and years before 1844 that of 1840. */

const ZONES = Intl.supportedValuesOf("timeZone");
const formats = new Map<string, Intl.DateTimeFormat>();

function offsetOf(timeZone: string, utc: number): number {
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
      timeZone,
      dateStyle: "short",
      timeStyle: "medium",
      hourCycle: "h23",
    });
  formats.set(timeZone, format);
  const part = Object.fromEntries(format.formatToParts(utc).map(({ type, value }) => [type, Number(value)]));
  // Intl returns two digits of the year: the year is that of UTC, or the one before or after it at New Year.
  const wall = new Date(utc);
  const year = wall.getUTCFullYear();
  const near = [year - 1, year, year + 1].find((one) => one % 100 === part["year"])!;
  wall.setUTCFullYear(near, part["month"]! - 1, part["day"]!);
  wall.setUTCHours(part["hour"]!, part["minute"]!, part["second"]!, 0);
  return wall.getTime() - utc;
}

test.each([
  ["far", "2100-06-01T00:00:00Z", "9998-12-31T00:00:00Z"],
  ["near", "1900-01-01T00:00:00Z", "2105-01-01T00:00:00Z"],
  ["past", "1750-01-01T00:00:00Z", "1900-01-01T00:00:00Z"],
])("offsets of %s years equal those of Intl", (_name, from, to) => {
  const second = fc.integer({ min: Date.parse(from) / 1_000, max: Date.parse(to) / 1_000 });
  fc.assert(
    fc.property(fc.constantFrom(...ZONES), second, (id, seconds) => {
      const utc = seconds * 1_000;
      const segment = segmentAt(zoneOf(id), utc);
      expect(segment.offset).toBe(offsetOf(id, utc));
      expect(segment.start <= utc && utc < segment.end).toBe(true);
      // A segment ends with a clock change, or with its year.
      expect(segmentAt(zoneOf(id), segment.end).before).toBe(segment.offset);
      if (segment.start > Date.parse(from)) expect(offsetOf(id, segment.start - 1_000)).toBe(segment.before);
    }),
    { numRuns: 400 },
  );
});

test.each(["America/Noronha", "America/Boa_Vista", "America/Recife"])(
  "summer time of less than a week is found: %s in October 2000",
  (id) => {
    const utc = Date.parse("2000-10-12T12:00:00Z");
    const segment = segmentAt(zoneOf(id), utc);
    expect(segment.offset).toBe(offsetOf(id, utc));
    expect(segment.offset - segment.before).toBe(3_600_000);
    expect(segment.end - segment.start).toBe(167 * 3_600_000);
  },
);
