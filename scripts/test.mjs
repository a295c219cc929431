// npm test and npm run test:long (--long): set-up, then vitest. Further arguments are vitest's.
import { join } from "node:path";
import { chromiumBinary } from "./lib/chromium.mjs";
import { main, stateDir } from "./lib/project.mjs";
import { redisBinary } from "./lib/redis-binary.mjs";
import { runTool } from "./lib/run.mjs";
import { setUp } from "./lib/setup.mjs";

await main(async () => {
  const args = process.argv.slice(2).filter((arg) => arg !== "--long");
  const isLong = process.argv.includes("--long");
  const projects = isLong ? ["long", "long-isolated"] : ["shared", "isolated"];
  const reportFile = join(stateDir(), isLong ? "test-long-report.json" : "test-report.json");
  const asksForReport = args.some((arg) => arg.startsWith("--reporter"));
  const report = process.env.CI && !asksForReport;
  await setUp();
  const { code } = await runTool(
    "vitest/vitest.mjs",
    [
      "run",
      ...projects.map((project) => `--project=${project}`),
      ...args,
      ...(report ? ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`] : []),
    ],
    // The tests start and kill their own servers, never the Redis of the environment.
    {
      env: {
        CARILLON_REDIS_SERVER: await redisBinary(),
        CARILLON_CHROMIUM: isLong ? await chromiumBinary() : undefined,
        REDIS_URL: undefined,
      },
    },
  );
  return code;
});
