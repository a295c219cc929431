import { CarillonError, type PayloadLimits } from "@carillon/core";
import { encodePayload } from "@carillon/core/internal";
import { describe, expect, it } from "vitest";

function refused(value: unknown, limits?: PayloadLimits): CarillonError {
  try {
    encodePayload(value, limits);
  } catch (error) {
    if (error instanceof CarillonError) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { a: value };
  return value;
}

describe("payloads", () => {
  it.each([
    ["null", null],
    ["numbers", [0, -1, 1.5, 1e300, Number.MAX_SAFE_INTEGER]],
    ["text", ["", "ü", "💥", "\0", "\u2028", "</script>"]],
    ["nested members", { a: { b: [true, false, null, {}] } }],
    ["harmless keys", { constructor: 1, prototype: 2, toString: 3, hasOwnProperty: 4 }],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
  ])("keeps %s", (_what, value) => {
    expect(JSON.parse(encodePayload(value))).toEqual(value);
  });

  it("omit undefined members, as optional fields", () => {
    expect(encodePayload({ a: undefined, b: 1 })).toBe('{"b":1}');
  });

  class Money {
    amount = 1;
  }
  const cycle: Record<string, unknown> = {};
  cycle["self"] = { deeper: cycle };
  const ring: unknown[] = [];
  ring.push(ring);

  it.each<[string, unknown, string, RegExp]>([
    ["a date", { at: new Date(0) }, "payload.at", /a Date is not JSON/],
    ["NaN", [1, Number.NaN], "payload[1]", /NaN is not JSON/],
    ["infinity", { a: [Number.NEGATIVE_INFINITY] }, "payload.a[0]", /-Infinity is not JSON/],
    ["undefined", undefined, "payload", /undefined is not JSON/],
    ["a hole in a list", [1, undefined, 2], "payload[1]", /undefined is not JSON/],
    ["a function", { f: () => {} }, "payload.f", /a function is not JSON/],
    ["a toJSON", { toJSON: () => "other" }, "payload.toJSON", /a function is not JSON/],
    ["a symbol", Symbol("x"), "payload", /a symbol is not JSON/],
    ["a bigint", { n: 1n }, "payload.n", /a bigint is not JSON/],
    ["a map", new Map(), "payload", /a Map is not JSON/],
    ["bytes", { b: Buffer.from("x") }, "payload.b", /a Buffer is not JSON/],
    ["an instance", new Money(), "payload", /a Money is not JSON/],
    ["a __proto__ key", JSON.parse('{"__proto__":{"admin":true}}'), "payload", /__proto__ is refused/],
    ["a __proto__ key below", JSON.parse('{"a":[{"__proto__":1}]}'), "payload.a[0]", /__proto__ is refused/],
  ])("%s is rejected", (_what, value, field, message) => {
    const error = refused(value);
    expect(error).toMatchObject({ code: "INVALID_PAYLOAD", field });
    expect(error.message).toMatch(message);
    expect(error.remedy).toMatch(/^[A-Z].*\.$/);
  });

  it.each([
    ["an object", cycle],
    ["a list", ring],
  ])("%s that contains itself is rejected, without a crash", (_what, value) => {
    const error = refused(value);
    expect(error.code).toBe("INVALID_PAYLOAD");
    expect(error.message).toMatch(/nested too deeply \(or refers to itself\)/);
    expect(error.field?.length).toBeLessThanOrEqual(80);
  });

  it("do not touch Object.prototype", () => {
    refused(JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("may have 64 levels and no more", () => {
    expect(JSON.parse(encodePayload(nested(64)))).toEqual(nested(64));
    expect(refused(nested(65)).code).toBe("INVALID_PAYLOAD");
    // The limit is far below the depth at which the check itself would overflow the stack.
    expect(refused(nested(100_000)).code).toBe("INVALID_PAYLOAD");
  });

  it.each([
    ["ascii", "a", 1],
    ["two bytes", "ü", 2],
    ["three bytes", "€", 3],
    ["four bytes", "💥", 4],
    ["a lone surrogate, which JSON escapes", "\ud800", 6],
    ["a quote, which JSON escapes", '"', 2],
    ["a control character, which JSON escapes", "\u0001", 6],
  ])("are measured in bytes of UTF-8: %s", (_what, unit, bytes) => {
    const text = unit.repeat(100);
    const size = 100 * bytes + 2;
    expect(Buffer.byteLength(JSON.stringify(text))).toBe(size);
    expect(encodePayload(text, { maxBytes: size, maxDepth: 1 })).toBe(JSON.stringify(text));
    const error = refused(text, { maxBytes: size - 1, maxDepth: 1 });
    expect(error).toMatchObject({ code: "PAYLOAD_TOO_LARGE", field: "payload" });
    expect(error.message).toContain(`${size} bytes of JSON, more than ${size - 1}`);
    expect(error.remedy).toMatch(/reference/);
  });

  it("may have 256 KiB by default", () => {
    const fits = "x".repeat(256 * 1024 - 2);
    expect(encodePayload(fits)).toHaveLength(256 * 1024);
    expect(refused(`${fits}x`).code).toBe("PAYLOAD_TOO_LARGE");
  });
});
