import { CarillonError, nameOf, type TaskRef, textOfName } from "@carillon/core";
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
      remedy: "Use 1 to 128 letters, digits, '.', '_' or '-'; nameOf(text) makes a name of other text.",
    });
    expect(error.message.length).toBeLessThan(250);
    expect(error.message).not.toMatch(/[\n\0]/);
  });

  it("are made of any text, and give it back", () => {
    expect(["auth0|5f7c", "ada@example.org", "user:42", "a_b", "system", "é"].map(nameOf)).toEqual([
      "auth0_7C5f7c",
      "ada_40example.org",
      "user_3A42",
      "a_5Fb",
      "system",
      "_C3_A9",
    ]);
    const signs = Array.from({ length: 0x2100 }, (_, code) => String.fromCodePoint(code));
    const names = [...signs, "a/b c", "日本語", "😀", "%41", "_41", "__"].map((text) => {
      const name = assertName(nameOf(text), "owner");
      expect(textOfName(name)).toBe(text);
      return name;
    });
    expect(new Set(names).size).toBe(names.length);
    for (const text of ["", "\ud800", "ü".repeat(22), undefined as never])
      expect(refused(() => nameOf(text))).toMatchObject({ code: "INVALID_NAME", field: "text" });
    for (const name of ["a_b", "a_zz", "_ff", "_C3", "_41", "_7c", "a@b", ""])
      expect(refused(() => textOfName(name))).toMatchObject({ code: "INVALID_NAME", field: "name" });
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
