// npm run check: all checks that need not run the code. Every step runs, whatever failed before.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageSteps } from "./check/packages.mjs";
import { supplyChainSteps } from "./check/supply-chain.mjs";
import { main, root, say, stateDir } from "./lib/project.mjs";
import { run, runTool } from "./lib/run.mjs";
import { setUp } from "./lib/setup.mjs";

const tool = (file, ...args) => runTool(file, args, { capture: true, env: { FORCE_COLOR: "0" } });

/** @type {import("./lib/run.mjs").Step[]} */
const STEPS = [
  ["format", () => tool("@biomejs/biome/bin/biome", "format", ".")],
  ["lint", () => tool("@biomejs/biome/bin/biome", "lint", "--error-on-warnings", ".")],
  [
    "imports in order",
    () =>
      tool("@biomejs/biome/bin/biome", "check", "--formatter-enabled=false", "--linter-enabled=false", "."),
  ],
  ["types", () => tool("typescript/bin/tsc", "-b", "--pretty", "false")],
  // Comes after the build, because it reads the built declarations.
  [
    "public API",
    () => run(process.execPath, [join(root, "scripts/api-reference/main.mjs"), "--check"], { capture: true }),
  ],
  ["types of tests", () => tool("typescript/bin/tsc", "-p", "tsconfig.test.json", "--pretty", "false")],
  ["types of scripts", () => tool("typescript/bin/tsc", "-p", "tsconfig.scripts.json", "--pretty", "false")],
  ["types of pages", () => tool("typescript/bin/tsc", "-p", "apps/console/ui", "--pretty", "false")],
  ["dead code", () => tool("knip/bin/knip.js", "--no-progress", "--no-config-hints")],
  ...supplyChainSteps,
  ...packageSteps(tool),
];

await main(async () => {
  await setUp({ withBuild: false }); // the step of the types builds, and reports failures
  const failed = [];
  for (const [name, step] of STEPS) {
    const started = Date.now();
    const { code, output } = await step();
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    console.log(`${code === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
    if (code === 0) continue;
    failed.push(name);
    console.log(output.trimEnd().replace(/^/gm, "         "));
  }
  const count = { passed: STEPS.length - failed.length, failures: failed };
  writeFileSync(join(stateDir(), "check-report.json"), JSON.stringify(count));
  say(
    `${count.passed} checks passed, ${failed.length} failed${failed.length ? `: ${failed.join(", ")}` : ""}`,
  );
  return failed.length === 0 ? 0 : 1;
});
