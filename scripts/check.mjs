// npm run check: all checks that need not run the code. Every step runs, whatever failed before.
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { packageSteps } from "./check/packages.mjs";
import { supplyChainSteps } from "./check/supply-chain.mjs";
import { main, root, say, stateDir } from "./lib/project.mjs";
import { run, runTool } from "./lib/run.mjs";
import { setUp } from "./lib/setup.mjs";

const tool = (file, ...args) => runTool(file, args, { capture: true, env: { FORCE_COLOR: "0" } });

/**
 * Steps of one phase run at the same time: the second phase needs the declarations and programs that the types' step builds.
 * @type {import("./lib/run.mjs").Step[][]}
 */
const PHASES = [
  [
    ["types", () => tool("typescript/bin/tsc", "-b", "--pretty", "false")],
    // In one run, which reads and parses each file once.
    [
      "format, lint, order of imports",
      () => tool("@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."),
    ],
  ],
  [
    ["dead code", () => tool("knip/bin/knip.js", "--no-progress", "--no-config-hints")],
    [
      "public API",
      () =>
        run(process.execPath, [join(root, "scripts/api-reference/main.mjs"), "--check"], { capture: true }),
    ],
    ["types of tests", () => tool("typescript/bin/tsc", "-p", "tsconfig.test.json", "--pretty", "false")],
    [
      "types of scripts",
      () => tool("typescript/bin/tsc", "-p", "tsconfig.scripts.json", "--pretty", "false"),
    ],
    ["types of pages", () => tool("typescript/bin/tsc", "-p", "apps/console/ui", "--pretty", "false")],
    ...packageSteps(tool),
    ...supplyChainSteps,
  ],
];

await main(async () => {
  await setUp({ withBuild: false }); // the step of the types builds, and reports failures
  const failed = [];
  for (const phase of PHASES) {
    const left = [...phase];
    const runSome = async () => {
      for (let next = left.shift(); next; next = left.shift())
        if (!(await passes(next))) failed.push(next[0]);
    };
    await Promise.all(Array.from({ length: availableParallelism() }, runSome));
  }
  const count = { passed: PHASES.flat().length - failed.length, failures: failed };
  writeFileSync(join(stateDir(), "check-report.json"), JSON.stringify(count));
  say(
    `${count.passed} checks passed, ${failed.length} failed${failed.length ? `: ${failed.join(", ")}` : ""}`,
  );
  return failed.length === 0 ? 0 : 1;
});

/** @param {import("./lib/run.mjs").Step} step */
async function passes([name, step]) {
  const started = Date.now();
  const { code, output } = await step();
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
  if (code !== 0) console.log(output.trimEnd().replace(/^/gm, "         "));
  return code === 0;
}
