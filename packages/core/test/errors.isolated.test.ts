import { CarillonError, ERROR_CODES, type ErrorCode, isCarillonError } from "@carillon/core";
import { quote } from "@carillon/core/internal";
import { describe, expect, it, vi } from "vitest";

describe("errors", () => {
  it("have field, fault and remedy in one message and as properties", () => {
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

  it("leave out the parts that are not given", () => {
    const error = new CarillonError("INTERNAL", "broken.");
    expect(error.message).toBe("broken.");
    expect(error.toJSON()).toEqual({ code: "INTERNAL", message: "broken." });
    expect("cause" in error).toBe(false);
  });

  it("are distinguished by class and code", () => {
    const error: unknown = new CarillonError("CONFLICT", "twice.");
    expect(isCarillonError(error)).toBe(true);
    expect(isCarillonError(error, "CONFLICT")).toBe(true);
    expect(isCarillonError(error, "INTERNAL")).toBe(false);
    expect(isCarillonError(Object.assign(new Error("twice."), { code: "CONFLICT" }))).toBe(false);
  });

  it("are instances of the class of another copy of this package", async () => {
    vi.resetModules();
    const copy = await import("../src/errors.js");
    vi.resetModules();
    const error = new copy.CarillonError("CONFLICT", "twice.");
    expect(copy.CarillonError).not.toBe(CarillonError);
    expect(error).toBeInstanceOf(CarillonError);
    expect(isCarillonError(error, "CONFLICT")).toBe(true);
    class Special extends CarillonError {}
    expect(new Special("CONFLICT", "twice.")).toBeInstanceOf(Special);
    expect(error).not.toBeInstanceOf(Special);
    for (const other of [new Error("x"), null, undefined, "CarillonError", { code: "CONFLICT" }])
      expect(other instanceof CarillonError).toBe(false);
  });

  it("have an HTTP status for each code", () => {
    const status = (code: ErrorCode) => new CarillonError(code, "x.").statusCode;
    expect(Object.fromEntries(ERROR_CODES.map((code) => [code, status(code)]))).toMatchObject({
      INVALID_TASK: 400,
      NEVER_FIRES: 400,
      UNKNOWN_TASK_TYPE: 400,
      UNAUTHORIZED: 401,
      TOKEN_EXPIRED: 401,
      FORBIDDEN: 403,
      TASK_NOT_FOUND: 404,
      RUN_NOT_FOUND: 404,
      CONFLICT: 409,
      AMBIGUOUS_TASK: 409,
      FROZEN: 409,
      FREEZE_NOT_FOUND: 404,
      SILENCE_NOT_FOUND: 404,
      REVISION_NOT_FOUND: 404,
      TOKEN_NOT_FOUND: 404,
      PAYLOAD_TOO_LARGE: 413,
      OWNER_LIMIT: 429,
      QUOTA_TASKS: 409,
      QUOTA_INTERVAL: 409,
      QUOTA_WAITING: 429,
      STALE_PLAN: 409,
      PLAN_REFUSED: 409,
      RATE_LIMITED: 429,
      INTERNAL: 500,
      REDIS_UNAVAILABLE: 503,
      REDIS_OUT_OF_MEMORY: 503,
    });
  });

  it("are errors like those of http-errors, for frameworks that answer with these", () => {
    for (const code of ERROR_CODES) {
      const error = new CarillonError(code, "x.");
      expect(error.status).toBe(error.statusCode);
      expect(error.expose).toBe(error.status < 500);
    }
  });

  it("have unique codes in one shape", () => {
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
  ])("quote %j in one printable line", (value, quoted) => {
    expect(quote(value)).toBe(quoted);
  });

  it("quote values that are not JSON", () => {
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
