// npm test, npm run test:long (--long) and npm run test:builders (--nightly): set-up, then vitest. Further arguments are vitest's.
import { join } from "node:path";
import { chromiumBinary } from "./lib/chromium.mjs";
import { main, stateDir } from "./lib/project.mjs";
import { runTool } from "./lib/run.mjs";
import { redisBinary, setUp } from "./lib/setup.mjs";

/**
 * More workers than cores, since most tests wait for Redis or for processes that they start. Not in the
 * configuration, where no option overrides what a project inherits.
 */
const BATTERIES = {
  short: { projects: ["shared", "isolated"], workers: 4 },
  long: { projects: ["long", "long-isolated"], workers: 6 },
  nightly: { projects: ["nightly"], workers: 3 },
};

await main(async () => {
  const given = process.argv.slice(2);
  const name = Object.keys(BATTERIES).find((one) => given[0] === `--${one}`) ?? "short";
  const { projects, workers } = BATTERIES[name];
  const args = given.filter((arg) => arg !== `--${name}`);
  const reportFile = join(stateDir(), name === "short" ? "test-report.json" : `test-${name}-report.json`);
  const asksForReport = args.some((arg) => arg.startsWith("--reporter"));
  const report = process.env.CI && !asksForReport;
  await setUp();
  const { code } = await runTool(
    "vitest/vitest.mjs",
    [
      "run",
      ...projects.map((project) => `--project=${project}`),
      ...(args.some((arg) => arg.startsWith("--maxWorkers")) ? [] : [`--maxWorkers=${workers}`]),
      ...args,
      ...(report ? ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`] : []),
    ],
    // The tests start and kill their own servers, never the Redis of the environment.
    {
      env: {
        CARILLON_REDIS_SERVER: await redisBinary(),
        CARILLON_CHROMIUM: name === "short" ? undefined : await chromiumBinary(),
        REDIS_URL: undefined,
      },
    },
  );
  return code;
});
