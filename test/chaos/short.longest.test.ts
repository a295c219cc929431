import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const CHAOS = fileURLToPath(new URL("../../scripts/chaos/chaos.mjs", import.meta.url));

/** Controls of the two main promises, nothing twice and nothing missing. `npm run chaos`, which is part of each night, runs all. */
const CONTROLS = ["fence removed", "writes lost"];
const SHORT = ["--seconds", "8", "--seed", "3", "--tasks", "20", "--nodes", "3", "--controls", `${CONTROLS}`];

/** Runs the battery as a user does; returns its exit code and its output. */
async function chaos(...args: string[]): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [CHAOS, "--ready", "--json", ...args], { stdio: "pipe" });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (part) => (text += part));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, text };
}

test("a short battery: nothing twice, nothing missing, and the controls fail", async () => {
  let { code, text } = await chaos(...SHORT);
  // On a slow machine nothing of one kind comes up in so short a run. The battery fails then, and is repeated if that is its only fault.
  for (let again = 0; again < 3 && /^FAILED: (nothing was compared|no fault was) [^;]*$/m.test(text); again++)
    ({ code, text } = await chaos(...SHORT));
  const report = JSON.parse(text.trim().split("\n").at(-1) ?? "{}");
  const clean = {
    duplicates: 0,
    gaps: 0,
    overlaps: 0,
    limits: 0,
    frozen: 0,
    paused: 0,
    stale: 0,
    items: 0,
    pending: 0,
    early: 0,
    counters: 0,
    regressions: 0,
    indexes: 0,
  };
  expect(report, text).toMatchObject({
    seed: 3,
    topology: "single",
    problems: [],
    failoverDuplicates: 0,
    ...clean,
  });
  const controls = Object.entries(report.controls as Record<string, { caught: boolean }>);
  expect(controls.map(([name, { caught }]) => [name, caught])).toEqual(CONTROLS.map((name) => [name, true]));
  expect(code, text).toBe(0);
});
