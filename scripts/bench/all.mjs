// Runs all benches, one after the other, each with its own servers. Arguments (`--smoke`, `--json`) go to each.

import { fileURLToPath } from "node:url";
import { run } from "../lib/run.mjs";

const BENCHES = [
  "time",
  "burst",
  "scale",
  "capacity",
  "idle",
  "trips",
  "resume",
  "sustained",
  "life",
  "cluster",
  "console",
  "plan",
];
let failed = 0;
for (const bench of BENCHES) {
  const file = fileURLToPath(new URL(`./${bench}.mjs`, import.meta.url));
  const { code } = await run(process.execPath, [file, ...process.argv.slice(2)]);
  if (code !== 0) {
    failed++;
    console.error(`bench ${bench} ended with ${code}`);
  }
}
process.exitCode = failed > 0 ? 1 : 0;
