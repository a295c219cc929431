// npm run test:seeds: runs test/seeds and reports which promised behaviour holds. Arguments are vitest's.
import { readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { chromiumBinary } from "./lib/chromium.mjs";
import { main, root, say, stateDir, Trouble } from "./lib/project.mjs";
import { runTool } from "./lib/run.mjs";
import { redisBinary, setUp } from "./lib/setup.mjs";

const FOLDER = "test/seeds";

await main(async () => {
  await setUp();
  const rows = await readRows();
  const { code, tests, broken } = await runTests();
  const results = rows.map((row) => ({ ...row, ...judge(tests.filter((test) => test.row === row.id)) }));

  const width = Math.max(...rows.map(({ behaviour }) => behaviour.length));
  const line = (id, behaviour, result) => `${id.padEnd(4)}| ${behaviour.padEnd(width)} | ${result}`;
  console.log(`\n${line("row", "behaviour", "result")}\n${"-".repeat(4)}|${"-".repeat(width + 2)}|--------`);
  for (const { id, behaviour, passed, why } of results) {
    console.log(line(id, behaviour, passed ? "passed" : `failed${why}`));
  }
  console.log("");

  // A misspelt row looks like a row without a test, and a file that cannot be loaded loses its rows.
  const strays = tests.filter(({ row }) => !rows.some(({ id }) => id === row));
  for (const { title, file } of strays) say(`${file}: "${title}" names no row`);
  for (const file of broken) say(`${file} could not be run`);
  for (const row of results.filter((row) => !row.passed)) say(`row ${row.id} ${row.reason}`);

  const passed = results.filter((row) => row.passed).length;
  console.log(`${passed} of ${rows.length} rows pass`);
  return code === 0 && passed === rows.length && strays.length + broken.length === 0 ? 0 : 1;
});

/** A row passes if it has tests and all of them passed; a skipped one did not. */
function judge(tests) {
  if (tests.length === 0) return { passed: false, why: " (no test)", reason: "has no test" };
  const bad = tests.filter(({ status }) => status !== "passed");
  const [first] = bad;
  return {
    passed: bad.length === 0,
    why: ` (${bad.length} of ${tests.length} tests)`,
    reason: first && `${first.status}: ${first.title} (${first.file}): ${first.message}`,
  };
}

/** The table is TypeScript, which this version of Node.js does not read, but vitest's loader does. */
async function readRows() {
  const { createViteServer } = await import("vitest/node");
  const loader = await createViteServer({
    root,
    configFile: false,
    appType: "custom",
    logLevel: "error",
    optimizeDeps: { noDiscovery: true },
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
  });
  try {
    return (await loader.ssrLoadModule(`/${FOLDER}/rows.ts`)).rows;
  } finally {
    await loader.close();
  }
}

async function runTests() {
  const file = join(stateDir(), "seeds-report.json");
  rmSync(file, { force: true }); // an old report must not stand for a run that never started
  const args = process.argv.slice(2);
  const some = args.some((arg) => arg.startsWith(FOLDER));
  const { code } = await runTool(
    "vitest/vitest.mjs",
    [
      "run",
      "--maxWorkers=3",
      ...(some ? [] : [`${FOLDER}/`]),
      ...args,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${file}`,
    ],
    // The tests start and kill their own servers, never the Redis of the environment.
    {
      env: {
        CARILLON_REDIS_SERVER: await redisBinary(),
        CARILLON_CHROMIUM: await chromiumBinary(),
        REDIS_URL: undefined,
      },
    },
  );
  const report = read(file);
  const tests = report.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ ancestorTitles, title, status, failureMessages }) => {
      const titles = [...ancestorTitles, title];
      const row = titles.map((one) => /^[A-E]\d+(?= )|^T\d+(?= )/.exec(one)?.[0]).find(Boolean);
      const message = failureMessages?.[0]?.split("\n")[0] ?? "no message";
      return { row, status, title: titles.join(" > "), file: relative(root, name), message };
    }),
  );
  const broken = report.testResults
    .filter(({ status, assertionResults }) => status === "failed" && assertionResults.length === 0)
    .map(({ name }) => relative(root, name));
  return { code, tests, broken };
}

function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    throw new Trouble("vitest left no report: it found no tests, or did not start.");
  }
}
