import { CarillonError, ERROR_CODES, isCarillonError, quote } from "@carillon/core";
import { describe, expect, it } from "vitest";

describe("errors", () => {
  it("says field, fault and remedy in one message, and each apart", () => {
    const cause = new Error("below");
    const error = new CarillonError("INVALID_NAME", "got “x”.", {
      field: "tags[2]",
      remedy: "Use letters.",
      cause,
    });
    expect(error.message).toBe("tags[2]: got “x”. Use letters.");
    expect(error).toMatchObject({
      name: "CarillonError",
      code: "INVALID_NAME",
      field: "tags[2]",
      remedy: "Use letters.",
      cause,
    });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: "INVALID_NAME",
      message: "tags[2]: got “x”. Use letters.",
      field: "tags[2]",
      remedy: "Use letters.",
    });
  });

  it("leaves out what it was not told", () => {
    const error = new CarillonError("INTERNAL", "broken.");
    expect(error.message).toBe("broken.");
    expect(error.toJSON()).toEqual({ code: "INTERNAL", message: "broken." });
    expect("cause" in error).toBe(false);
  });

  it("is told apart by class and code", () => {
    const error: unknown = new CarillonError("CONFLICT", "twice.");
    expect(isCarillonError(error)).toBe(true);
    expect(isCarillonError(error, "CONFLICT")).toBe(true);
    expect(isCarillonError(error, "INTERNAL")).toBe(false);
    expect(isCarillonError(Object.assign(new Error("twice."), { code: "CONFLICT" }))).toBe(false);
  });

  it("has each code once, in one shape", () => {
    expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length);
    for (const code of ERROR_CODES) expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
  });

  it.each([
    ["plain", '"plain"'],
    ['a "b"\n\u001b[31m', '"a \\"b\\"\\n\\u001b[31m"'],
    ["x".repeat(61), `"${"x".repeat(60)}…"`],
    [{ a: 1 }, '"{\\"a\\":1}"'],
    [undefined, '"undefined"'],
    [5, '"5"'],
  ])("quotes %j in one printable line", (value, quoted) => {
    expect(quote(value)).toBe(quoted);
  });

  it("quotes what is no JSON as well", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(quote(10n)).toBe('"10n"');
    expect(quote(circle)).toBe('"[object Object]"');
    expect(quote({ toJSON: () => nothing() })).toBe('"[object Object]"');
  });
});

function nothing(): never {
  throw new Error("no JSON");
}
