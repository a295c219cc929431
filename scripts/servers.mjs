// npm run test:servers -- SUBJECT... [--suite store]...: suites on other servers and runtimes, one after the other, and a table of results.
// A subject is the path of a server program, `node@24` (that version of Node.js, from npm), or `bun@1` (a task from its put to its result).
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { main, root, say, stateDir, Trouble } from "./lib/project.mjs";
import { run } from "./lib/run.mjs";
import { runtime } from "./lib/runtime.mjs";
import { redisBinary, setUp } from "./lib/setup.mjs";

/** Each with its vitest project. */
const SUITES = {
  store: ["shared", "packages/store/test"],
  nodes: ["shared", "packages/scheduler/test"],
  sdk: ["shared", "packages/sdk/test"],
  topologies: ["long", "test/topologies"],
};

await main(async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { suite: { type: "string", multiple: true, default: Object.keys(SUITES) } },
  });
  const unknown = values.suite.find((name) => !(name in SUITES));
  if (unknown)
    throw new Trouble(`there is no suite ${unknown}; there are ${Object.keys(SUITES).join(", ")}.`);
  if (positionals.length === 0)
    throw new Trouble("nothing is named to test with: give paths of server programs, node@24, bun@1.");
  await setUp();
  const rows = [];
  const failures = [];
  for (const subject of positionals) {
    const [kind] = subject.split("@");
    const program = kind === "node" || kind === "bun" ? await runtime(subject) : resolve(subject);
    const version = await versionOf(program);
    for (const suite of kind === "bun" ? ["a task, from its put to its result"] : values.suite) {
      const { passed, failed } =
        kind === "bun"
          ? await ringOn(program)
          : await runSuite(suite, {
              node: kind === "node" ? program : process.execPath,
              server: kind === "node" ? await redisBinary() : program,
            });
      rows.push(`| ${version} | ${suite} | ${passed} | ${failed.length} |`);
      failures.push(...failed.map((what) => `${version}: ${what}`));
      say(rows.at(-1));
    }
  }
  console.log(["", "| with | suite | passed | failed |", "| --- | --- | --- | --- |", ...rows].join("\n"));
  for (const failure of failures) say(`failed with ${failure}`);
  return failures.length === 0 ? 0 : 1;
});

async function runSuite(name, { node, server }) {
  const [project, folder] = SUITES[name];
  const report = join(stateDir(), "servers-report.json");
  rmSync(report, { force: true }); // an old report must not stand for a run that never started
  const { output } = await run(
    node,
    [
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      `--project=${project}`,
      "--maxWorkers=1",
      folder,
      "--reporter=json",
      `--outputFile.json=${report}`,
    ],
    { env: { CARILLON_REDIS_SERVER: server, REDIS_URL: undefined }, capture: true },
  );
  if (!existsSync(report)) throw new Trouble(`vitest left no report:\n${output}`);
  const { numPassedTests: passed, testResults } = JSON.parse(readFileSync(report, "utf8"));
  const failed = testResults.flatMap(({ name: file, status, message, assertionResults }) => {
    const titles = assertionResults.filter((one) => one.status === "failed").map((one) => one.fullName);
    // A file that could not be loaded has no tests.
    if (titles.length === 0 && status === "failed") titles.push(message);
    return titles.map((title) => `${relative(root, file)}: ${title}`);
  });
  return { passed, failed };
}

/** Runs a node, a worker and a client on another runtime, and waits for the result of their task. */
async function ringOn(runtime) {
  const { eventually, startRedis } = await import("@carillon/testing");
  const { Client } = await import("@carillon/sdk");
  const redis = await startRedis({ appendonly: true });
  const client = new Client({ connection: redis.url });
  const children = ["node", "worker", "client"].map((name) =>
    spawn(runtime, [join(root, `test/packages/bundles/${name}.ts`)], {
      env: { ...process.env, REDIS_URL: redis.url },
      stdio: ["ignore", "ignore", "inherit"],
    }),
  );
  try {
    await eventually(async () => {
      const runs = await client.runs.list("bell");
      return runs.some(({ result }) => JSON.stringify(result) === '{"rang":3}');
    });
    return { passed: 1, failed: [] };
  } catch (error) {
    return { passed: 0, failed: [String(error)] };
  } finally {
    for (const child of children) child.kill();
    await client.close();
    await redis.stop();
  }
}

/** Its name and version, as it prints them. */
async function versionOf(program) {
  const { code, output } = await run(program, ["--version"], { capture: true });
  if (code !== 0) throw new Trouble(`${program} cannot be run: ${output}`);
  const [, server, version] = /^(\w+) server v=(\S+)/.exec(output) ?? [];
  return server ? `${server} ${version}` : `${program.split("/").at(-1)} ${output.trim()}`;
}
