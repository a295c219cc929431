import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const example = fileURLToPath(new URL("../fixtures/kit.example.mjs", import.meta.url));
const readme = fileURLToPath(new URL("../../README.md", import.meta.url));

it("the README's example is a test that passes under node:test, with the built package", async () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", example], {
    env,
  });
  expect(stdout).toMatch(/^# pass 1$/m);
  expect(stdout).toMatch(/^# fail 0$/m);
  expect(await readFile(readme, "utf8")).toContain(await readFile(example, "utf8"));
});
