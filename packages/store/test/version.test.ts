import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { VERSION } from "../src/version.js";

it("is the version in package.json", () => {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  expect(VERSION).toBe((JSON.parse(manifest) as { version: string }).version);
});
