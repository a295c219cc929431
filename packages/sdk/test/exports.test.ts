import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import * as sdk from "../src/index.js";

/** The names in the braces of its exports, values and types. */
function exported(): string[] {
  const text = readFileSync(new URL("../src/index.ts", import.meta.url), "utf8");
  expect(text, "names only: no export *").not.toMatch(/\*/);
  return [...text.matchAll(/\{([^}]*)\}/g)]
    .flatMap(([, names = ""]) => names.split(","))
    .map((name) => name.replace("type ", "").trim())
    .filter(Boolean);
}

it("the root exports fewer than 90 names; what few applications need is in sub-paths", () => {
  const names = exported();
  expect(names).toEqual(expect.arrayContaining(Object.keys(sdk)));
  expect(names.length).toBeLessThan(90);
  expect(new Set(names).size).toBe(names.length);
});
