import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "./lock.mjs";
import { root, say, Trouble } from "./project.mjs";
import { run, runTool } from "./run.mjs";

const NODE = [20, 19];

/** Installs dependencies, and builds packages unless the caller does. Quick if there is nothing to do. */
export async function setUp({ withBuild = true } = {}) {
  checkNode();
  await withLock(
    "setup",
    async () => {
      await installDependencies();
      if (withBuild) await build();
    },
    (pid) => say(`waiting for another set-up of this checkout (process ${pid})`),
  );
}

/** Path of a Redis server program, which is installed if there is none. @returns {Promise<string>} */
export async function redisBinary() {
  const testing = await import("@carillon/testing"); // exists once it is built
  return testing.redisBinary({ install: say });
}

function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > NODE[0] || (major === NODE[0] && minor >= NODE[1])) return;
  throw new Trouble(`Node.js ${NODE.join(".")} or newer is needed; this is ${process.versions.node}.`);
}

async function installDependencies() {
  if (isInstalled()) return;
  say("installing dependencies (npm ci)");
  const npm = process.env.npm_execpath?.endsWith(".js")
    ? [process.execPath, process.env.npm_execpath]
    : ["npm"];
  const [command, ...first] = npm;
  const { code, output } = await run(
    command,
    // Development dependencies are needed for the build, whatever NODE_ENV says.
    [...first, "ci", "--include=dev", "--no-audit", "--no-fund"],
    { capture: true },
  );
  if (code !== 0) throw new Trouble(`npm ci failed:\n${output.split("\n").slice(0, 30).join("\n")}`);
}

/** Compares the tree that npm recorded in node_modules with the lock file, so that a manual `npm install` counts. */
function isInstalled() {
  const wanted = packagesOf("package-lock.json");
  const present = packagesOf("node_modules/.package-lock.json");
  if (!wanted || !present) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    // Our own packages are linked, whatever version they have.
    if (!path.includes("node_modules/")) return true;
    const found = present[path];
    if (found) return found.version === entry.version && found.integrity === entry.integrity;
    // A native build for other machines, or a dependency of one.
    return entry.optional === true && !isForThisMachine(entry);
  });
}

function isForThisMachine({ os, cpu, libc }) {
  if (!os || !cpu || libc) return false;
  return os.includes(process.platform) && cpu.includes(process.arch);
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(join(root, file), "utf8")).packages;
  } catch {
    return undefined;
  }
}

async function build() {
  const started = Date.now();
  const { code, output } = await buildWithTurbo();
  if (code !== 0) throw new Trouble(`the build failed:\n${output}`);
  const seconds = (Date.now() - started) / 1000;
  if (seconds > 2) say(`built in ${seconds.toFixed(1)} s`);
}

async function buildWithTurbo() {
  const turbo = "turbo/bin/turbo";
  const works = await runTool(turbo, ["--version"], { capture: true });
  if (works.code === 0)
    return runTool(turbo, ["run", "build", "--output-logs=errors-only"], { capture: true });
  // Without turbo for this machine: the same build steps, without its cache.
  await import("../../packages/store/lua/generate.mjs");
  const built = await runTool("typescript/bin/tsc", ["-b"], { capture: true });
  if (built.code !== 0) return built;
  for (const app of ["cli", "scheduler", "console"]) await import(`../../apps/${app}/bundle.mjs`);
  return runTool("vite/bin/vite.js", ["build", "--config", "apps/console/ui/vite.config.ts"], {
    capture: true,
  });
}
