import { expect, it } from "vitest";
import fc from "../../../test/fast-check.js";
import { joinLongValues, splitLongValues } from "../src/task/long-values.js";

const LONG = new Set(["a", "b"]);
const split = (hash: Record<string, string>) =>
  Object.fromEntries(splitLongValues(new Map(Object.entries(hash)), LONG));
const x = (length: number) => "x".repeat(length);

it("cuts a long value into parts that keep the hash small", () => {
  expect(split({ a: x(65), b: x(64), c: "c" })).toEqual({ a: x(64), "a:1": "x", b: x(64), c: "c" });
  expect(split({ a: x(256) })).toEqual({ a: x(64), "a:1": x(64), "a:2": x(64), "a:3": x(64) });
  // The last byte of "é" would be the 65th: it begins the next part.
  expect(split({ a: `${x(63)}é!` })).toEqual({ a: x(63), "a:1": "é!" });
});

it("does not cut values of a hash that is large in any case", () => {
  for (const hash of [
    { a: x(257) },
    { a: x(100), c: x(65) },
    { a: x(100), b: x(1_000) },
    { a: x(64) },
    { a: "" },
  ]) {
    expect(split(hash)).toEqual(hash);
  }
});

it("joins the parts, whatever their order", () => {
  // Characters of one to four bytes each: 256 bytes at most.
  const value = fc.string({ unit: fc.constantFrom("x", "é", "漢", "😀"), maxLength: 64, size: "max" });
  fc.assert(
    fc.property(value, value, fc.boolean(), (a, b, reversed) => {
      const hash = { a, b, c: "c" };
      const stored = [...splitLongValues(new Map(Object.entries(hash)), LONG)];
      for (const [, part] of stored) expect(Buffer.byteLength(part)).toBeLessThanOrEqual(64);
      const read = new Map(reversed ? stored.reverse() : stored);
      joinLongValues(read);
      expect(Object.fromEntries(read)).toEqual(hash);
    }),
  );
});
