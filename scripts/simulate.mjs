// npm run chaos:simulate -- [--seeds N] [--from N] [--seed N]: the deterministic simulation (docs/chaos.md).
import { parseArgs } from "node:util";
import { main, Trouble } from "./lib/project.mjs";
import { runTool } from "./lib/run.mjs";
import { redisBinary, setUp } from "./lib/setup.mjs";

await main(async () => {
  const { values } = parseArgs({
    options: {
      /** Number of histories; default 1,000. */
      seeds: { type: "string" },
      /** Seed of the first one; default 1. */
      from: { type: "string" },
      /** Runs one history, and prints every event of it. */
      seed: { type: "string" },
    },
  });
  for (const [name, value] of Object.entries(values)) {
    if (!/^\d+$/.test(value)) throw new Trouble(`--${name} must be a whole number.`);
  }
  await setUp();
  const { code } = await runTool(
    "vitest/vitest.mjs",
    [
      "run",
      "--project=long-isolated",
      "packages/scheduler/test/simulation",
      "--disable-console-intercept",
      "--reporter=dot",
    ],
    {
      env: {
        CARILLON_REDIS_SERVER: await redisBinary(),
        REDIS_URL: undefined,
        CARILLON_SIMULATE_REPORT: "1",
        CARILLON_SIMULATE_SEEDS: values.seeds ?? "1000",
        CARILLON_SIMULATE_FROM: values.from,
        CARILLON_SIMULATE_SEED: values.seed,
      },
    },
  );
  return code;
});
