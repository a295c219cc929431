// npm run release:dry: tests a release as users get it. Packs all packages, checks their exports, types and sizes, and the settings for
// provenance; installs the tarballs into an empty ESM and an empty CommonJS project, checks the licences of all that comes along, and runs the
// example of the SDK's README there, on each supported version of Node.js; builds and runs apps of Next.js and NestJS on each; replaces a fleet of
// the packed version by the next one; writes the release notes. Needs a package registry.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { packageSteps } from "./check/packages.mjs";
import { licenceProblems } from "./check/supply-chain.mjs";
import { installed, readLock } from "./lib/lock-file.mjs";
import { pack, publishedPackages } from "./lib/packages.mjs";
import { main, root, say, stateDir, Trouble } from "./lib/project.mjs";
import { releaseNotes } from "./lib/release-notes.mjs";
import { run, runTool } from "./lib/run.mjs";
import { NODES, runtime } from "./lib/runtime.mjs";
import { setUp } from "./lib/setup.mjs";

/** Largest tarball, in kB. A package that grows beyond it has packed something by mistake, or needs a reason. */
const LARGEST_KB = 1_500;
const README = "packages/sdk/README.md";
const README_URL = '"redis://localhost:6379"';

/** Appended to the README's client and worker: a node, and the ends of a triggered run and of a due one. */
const ENDING = `
import { Scheduler } from "@carillon/scheduler";
const node = new Scheduler({ connection: ${README_URL} });
await node.start();
const ends = new Map();
const ended = new Promise((resolve) => {
  worker.on("settled", ({ task, outcome }) => {
    ends.set(task, outcome);
    if (ends.has("system/acme") && ends.has("system/bell")) resolve();
  });
});
await client.trigger("acme");
await client.put(report, { id: "bell", payload: { tenant: "acme" }, schedule: { every: "1s" } });
await ended;
await worker.stop();
await node.stop();
await client.close();
console.log(JSON.stringify({ acme: ends.get("system/acme"), bell: ends.get("system/bell"), on: process.versions.node }));
`;

/** Runs the example on its own Redis, from the installed testing package. */
const RUNNER = `
import { execFileSync } from "node:child_process";
import { startRedis } from "@carillon/testing";

const redis = await startRedis({ appendonly: true });
const env = { ...process.env, REDIS_URL: redis.url };
try {
  const run = (file, ...args) => execFileSync(process.execPath, [file, ...args], { env, encoding: "utf8", timeout: 30_000 });
  const example = JSON.parse(run("index.js").trim().split("\\n").at(-1));
  const { tasks } = JSON.parse(run("node_modules/@carillon/cli/bin/carillon.js", "list", "--json"));
  console.log(JSON.stringify({ ...example, tasks: tasks.length }));
} finally {
  await redis.stop();
}
`;

await main(async () => {
  await setUp();
  const home = mkdtempSync(join(tmpdir(), "carillon-release-"));
  try {
    const tarballs = await pack(publishedPackages(), home);
    say(`packed ${tarballs.length} packages`);
    let failures = 0;
    const report = (name, problems) => {
      say(`${name}: ${problems.length === 0 ? "ok" : `failed\n${problems.join("\n")}`}`);
      if (problems.length > 0) failures += 1;
    };
    report("sizes", sizeProblems(tarballs));
    report("provenance", provenanceProblems());
    const tool = (file, ...args) => runTool(file, args, { capture: true, env: { FORCE_COLOR: "0" } });
    for (const [name, step] of packageSteps(tool)) {
      const { code, output } = await step();
      report(name, code === 0 ? [] : [output.trimEnd()]);
    }
    const source = exampleSource();
    const projects = [
      await makeProject(join(home, "esm"), "module", source, tarballs),
      await makeProject(join(home, "commonjs"), "commonjs", asCommonJs(source), tarballs),
    ];
    for (const { folder, type } of projects)
      report(
        `licences, ${type}`,
        licenceProblems(readLock(folder), (at) => installed(at, folder)),
      );
    for (const major of NODES) {
      const node = await runtime(`node@${major}`);
      for (const { folder, type } of projects) {
        const problem = await problemOf(node, major, folder);
        report(`Node.js ${major}, ${type}`, problem === undefined ? [] : [problem]);
      }
    }
    const commands = {
      "apps of Next.js and NestJS": [
        "scripts/test.mjs",
        "--nightly",
        "test/packages/builders.nightly.test.ts",
      ],
      "rolling upgrade": ["scripts/chaos/upgrade.mjs", "--from", home],
    };
    for (const [name, args] of Object.entries(commands)) {
      const { code, output } = await run(process.execPath, args, { capture: true });
      report(name, code === 0 ? [] : [output]);
    }
    const notes = join(stateDir(), "release-notes.md");
    writeFileSync(notes, `${releaseNotes()}\n`);
    say(`wrote the release notes to ${notes}`);
    return failures === 0 ? 0 : 1;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

function sizeProblems(tarballs) {
  return tarballs.flatMap((file) => {
    const kb = Math.ceil(statSync(file).size / 1_000);
    say(`  ${basename(file)}: ${kb} kB`);
    return kb > LARGEST_KB ? [`${basename(file)} has ${kb} kB, more than ${LARGEST_KB}.`] : [];
  });
}

/** npm attests a package only if its manifest names the repository, and the workflow may ask for a token. */
function provenanceProblems() {
  const workflow = readFileSync(join(root, ".github/workflows/release.yml"), "utf8");
  const missing = ["id-token: write", 'NPM_CONFIG_PROVENANCE: "true"'].filter(
    (line) => !workflow.includes(line),
  );
  const { repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const wrong = publishedPackages().filter(
    ({ folder, manifest }) =>
      manifest.repository?.url !== repository.url || manifest.repository.directory !== folder,
  );
  return [
    ...missing.map((line) => `release.yml lacks "${line}".`),
    ...wrong.map(({ folder }) => `${folder}/package.json names another repository or folder.`),
  ];
}

/** The README's examples of a client and of a worker, in TypeScript that is plain JavaScript too. */
function exampleSource() {
  const blocks = [...readFileSync(join(root, README), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)];
  const [client, worker] = ["import { Client,", "import { Worker }"].map((begin) =>
    blocks.map(([, code]) => code).find((code) => code.startsWith(begin)),
  );
  if (!client || !worker) throw new Trouble(`${README} has no example of a client, or none of a worker.`);
  return [client, worker, ENDING].join("\n").replaceAll(README_URL, "process.env.REDIS_URL");
}

/** Uses `require` for `import`, and an async function, because CommonJS has no top-level await. */
function asCommonJs(source) {
  const code = source
    .replace(/^import (\{.*\}) from (".*");/gm, "const $1 = require($2);")
    .replace(/^export /gm, "");
  return `(async () => {\n${code}\n})();\n`;
}

async function makeProject(folder, type, source, tarballs) {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type }));
  writeFileSync(join(folder, "index.js"), source);
  writeFileSync(join(folder, "runner.mjs"), RUNNER);
  const args = ["install", "--no-audit", "--no-fund", "--loglevel", "error", ...tarballs, "zod"];
  const { code, output } = await run("npm", args, { cwd: folder, capture: true });
  if (code !== 0) throw new Trouble(`npm install into an empty ${type} project failed:\n${output}`);
  say(`installed into an empty ${type} project`);
  return { folder, type };
}

/** Problem of the example on that Node.js; undefined: none. */
async function problemOf(node, major, folder) {
  const { code, output } = await run(node, ["runner.mjs"], {
    cwd: folder,
    capture: true,
    timeoutMs: 120_000,
  });
  const last = output.trim().split("\n").at(-1) ?? "";
  const wanted = new RegExp(`^{"acme":"succeeded","bell":"succeeded","on":"${major}\\..*","tasks":\\d+}$`);
  return code === 0 && wanted.test(last) ? undefined : `${output.trim().split("\n").slice(-30).join("\n")}`;
}
