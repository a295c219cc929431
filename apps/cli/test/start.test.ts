import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Entry points without Redis, BullMQ and zod. */
const LIGHT = ["@carillon/sdk/conditions", "@carillon/ops/words"];

/** A module whose place in the bundle its values take. */
const INPUTS = new URL("../src/inputs.ts", import.meta.url);

/** Packages of ours that a module imports when it is loaded, by itself or through modules of its own. */
function packagesOf(file: URL, seen = new Set([INPUTS.href])): string[] {
  if (seen.has(file.href)) return [];
  seen.add(file.href);
  const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export) (?!type)[^;]*? from "([^"]+)"/gm);
  return [...imports].flatMap(([, name = ""]) => {
    if (name.startsWith("@carillon/")) return [name];
    return name.startsWith(".") ? packagesOf(new URL(name.replace(/\.js$/, ".ts"), file), seen) : [];
  });
}

/** The text of a file of the bundle, and of those that it imports when it is loaded. */
function bundled(file: URL, seen = new Set<string>()): string {
  if (seen.has(file.href)) return "";
  seen.add(file.href);
  const text = readFileSync(file, "utf8");
  const imports = [...text.matchAll(/^import\b[^;]*?"(\.\/[^"]+)"/gm)];
  return text + imports.map(([, name = ""]) => bundled(new URL(name, file), seen)).join("");
}

it("a command line is read before anything is loaded that only a connection needs", () => {
  const found = packagesOf(new URL("../src/program.ts", import.meta.url));
  expect([...new Set(found)].sort()).toEqual([...LIGHT].sort());
});

it("the bundle has the fields of the operations, and reads no schemas for them", () => {
  const text = bundled(new URL("../bundle/main.js", import.meta.url));
  expect(text).toContain("Shortest time between two occurrences of a task".toLowerCase().slice(1));
  expect(text).not.toMatch(/ZodObject|ioredis/);
});
