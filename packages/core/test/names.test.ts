import { CarillonError, type TaskRef } from "@carillon/core";
import { assertName, isName, localName, parseLocalName, parseRef } from "@carillon/core/internal";
import { describe, expect, it } from "vitest";

const LONGEST = "x".repeat(128);
const BAD_NAMES: [string, unknown][] = [
  ["empty", ""],
  ["one too long", `${LONGEST}x`],
  ["100 KB", "x".repeat(100 * 1024)],
  ["a colon", "a:b"],
  ["a brace", "a{b}"],
  ["a slash", "a/b"],
  ["a newline in the middle", "a\nb"],
  ["a newline at the end", "a\n"],
  ["a NUL", "a\0"],
  ["a space", "a b"],
  ["a comma (tags are joined by it)", "a,b"],
  ["an @ (run ids are joined by it)", "a@b"],
  ["a tilde (our keys begin with it)", "~a"],
  ["an umlaut", "ü"],
  ["a fullwidth digit", "１"],
  ["a number", 7],
  ["null", null],
  ["undefined", undefined],
  ["an object that prints as a name", { toString: () => "ok" }],
];

function refused(act: () => unknown): CarillonError {
  try {
    act();
  } catch (error) {
    if (error instanceof CarillonError) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

describe("names", () => {
  it.each(["a", "A-Z", "a.b_c-1", "0", "-", ".", "wait", "__proto__", LONGEST])("%s is accepted", (name) => {
    expect(isName(name)).toBe(true);
    expect(assertName(name, "id")).toBe(name);
  });

  it.each(BAD_NAMES)("%s is rejected", (_what, value) => {
    expect(isName(value)).toBe(false);
    const error = refused(() => assertName(value, "queue"));
    expect(error).toMatchObject({
      code: "INVALID_NAME",
      field: "queue",
      remedy: "Use 1 to 128 letters, digits, '.', '_' or '-'.",
    });
    expect(error.message.length).toBeLessThan(250);
    expect(error.message).not.toMatch(/[\n\0]/);
  });

  it("address a task by id, by owner/id, or by its parts", () => {
    expect(parseRef("nightly")).toEqual({ queue: undefined, owner: "system", id: "nightly" });
    expect(parseRef("nightly", "acme")).toEqual({ queue: undefined, owner: "acme", id: "nightly" });
    expect(parseRef("acme/nightly", "other")).toEqual({ queue: undefined, owner: "acme", id: "nightly" });
    expect(parseRef({ id: "n" }, "acme")).toEqual({ queue: undefined, owner: "acme", id: "n" });
    expect(parseRef({ id: "n", owner: "o", queue: "q" })).toEqual({ queue: "q", owner: "o", id: "n" });
  });

  it.each<[TaskRef, string]>([
    ["", "id"],
    ["a/", "id"],
    ["/b", "owner"],
    ["a/b/c", "id"],
    ["a:b", "id"],
    [{ id: "" }, "id"],
    [{ id: "a", owner: "b/c" }, "owner"],
    [{ id: "a", queue: "q:q" }, "queue"],
  ])("refuses the ref %j, naming %s", (ref, field) => {
    expect(refused(() => parseRef(ref))).toMatchObject({ code: "INVALID_NAME", field });
  });

  it("can be split into their parts again", () => {
    for (const name of [
      { owner: "a", id: "b" },
      { owner: "a.b", id: "c-d" },
    ]) {
      expect(parseLocalName(localName(name))).toEqual(name);
    }
  });
});
