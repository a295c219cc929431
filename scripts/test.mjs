// npm test: set-up, then vitest. Arguments are vitest's.
import { join } from "node:path";
import { main, stateDir } from "./lib/project.mjs";
import { redisBinary } from "./lib/redis-binary.mjs";
import { runTool } from "./lib/run.mjs";
import { setUp } from "./lib/setup.mjs";

const REPORT = "test-report.json";

await main(async () => {
  const args = process.argv.slice(2);
  const asksForReport = args.some((arg) => arg.startsWith("--reporter"));
  const report = process.env.CI || asksForReport;
  await setUp();
  const { code } = await runTool(
    "vitest/vitest.mjs",
    [
      "run",
      ...args,
      ...(report && !asksForReport ? ["--reporter=default"] : []),
      ...(report ? ["--reporter=json", `--outputFile.json=${join(stateDir(), REPORT)}`] : []),
    ],
    // The tests start servers of their own, and kill them: never on the Redis we were pointed at.
    { env: { CARILLON_REDIS_SERVER: await redisBinary(), REDIS_URL: undefined } },
  );
  return code;
});
