import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Entry points without Redis, BullMQ and zod. */
const LIGHT = ["@carillon/sdk/conditions", "@carillon/ops/words"];

/** Packages of ours that a module imports when it is loaded, by itself or through modules of its own. */
function packagesOf(file: URL, seen = new Set<string>()): string[] {
  if (seen.has(file.href)) return [];
  seen.add(file.href);
  const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export) (?!type)[^;]*? from "([^"]+)"/gm);
  return [...imports].flatMap(([, name = ""]) => {
    if (name.startsWith("@carillon/")) return [name];
    return name.startsWith(".") ? packagesOf(new URL(name.replace(/\.js$/, ".ts"), file), seen) : [];
  });
}

it("a command line is read before anything is loaded that only a connection needs", () => {
  const found = packagesOf(new URL("../src/program.ts", import.meta.url));
  expect([...new Set(found)].sort()).toEqual([...LIGHT].sort());
});
