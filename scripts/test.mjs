// npm test, npm run test:long (--long) and npm run test:builders (--nightly): set-up, then vitest. Further arguments are vitest's.
import { join } from "node:path";
import { chromiumBinary } from "./lib/chromium.mjs";
import { main, stateDir } from "./lib/project.mjs";
import { redisBinary } from "./lib/redis-binary.mjs";
import { runTool } from "./lib/run.mjs";
import { setUp } from "./lib/setup.mjs";

const BATTERIES = { "--long": ["long", "long-isolated"], "--nightly": ["nightly"] };
/** More than cores: most tests wait for Redis, or for processes that they start. Here and not in the configuration, which no option overrides. */
const WORKERS = 3;

await main(async () => {
  const [first = "", ...rest] = process.argv.slice(2);
  const projects = BATTERIES[first];
  const args = projects ? rest : process.argv.slice(2);
  const reportFile = join(stateDir(), `test${projects ? first.replace("--", "-") : ""}-report.json`);
  const asksForReport = args.some((arg) => arg.startsWith("--reporter"));
  const report = process.env.CI && !asksForReport;
  await setUp();
  const { code } = await runTool(
    "vitest/vitest.mjs",
    [
      "run",
      ...(projects ?? ["shared", "isolated"]).map((project) => `--project=${project}`),
      ...(args.some((arg) => arg.startsWith("--maxWorkers")) ? [] : [`--maxWorkers=${WORKERS}`]),
      ...args,
      ...(report ? ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`] : []),
    ],
    // The tests start and kill their own servers, never the Redis of the environment.
    {
      env: {
        CARILLON_REDIS_SERVER: await redisBinary(),
        CARILLON_CHROMIUM: projects ? await chromiumBinary() : undefined,
        REDIS_URL: undefined,
      },
    },
  );
  return code;
});
