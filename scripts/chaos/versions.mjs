// Copies of the built packages that nodes run from: this version, a next one that writes a newer format of definitions, or a packed one.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { root, stateDir, Trouble } from "../lib/project.mjs";
import { run } from "../lib/run.mjs";

const PARTS = {
  core: "packages/core",
  store: "packages/store",
  scheduler: "packages/scheduler",
  sdk: "packages/sdk",
};
/** @type {[RegExp, string]} */
const FORMAT = [/(?<=export const FORMAT_VERSION = )\d+/, "1000"];

/** A folder of this run below the checkout, so that dependencies are found; it is deleted with the process. */
export function runDir() {
  const dir = stateDir("chaos", String(process.pid));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/**
 * Installs packed packages, with their own dependencies: the tarballs of a folder, as `npm pack` writes them, or a published version.
 *
 * @param {string} dir
 * @param {string} from
 * @returns {Promise<string>} the folder
 */
export async function installVersion(dir, from) {
  const names = Object.keys(PARTS).map((part) => `carillon-${part}-`);
  const tarballs = existsSync(from)
    ? readdirSync(from).filter((file) =>
        names.some((name) => file.startsWith(name) && /^\d.*tgz$/.test(file.slice(name.length))),
      )
    : undefined;
  if (tarballs && tarballs.length !== names.length)
    throw new Trouble(
      `${from} must hold one tarball of each of ${Object.keys(PARTS).join(", ")}; it has ${tarballs.length}.`,
    );
  const packages =
    tarballs?.map((file) => resolve(from, file)) ??
    Object.keys(PARTS).map((part) => `@carillon/${part}@${from}`);
  const home = join(dir, "installed");
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true }));
  const { code, output } = await run(
    "npm",
    ["install", "--no-audit", "--no-fund", "--loglevel", "error", ...packages],
    {
      cwd: home,
      capture: true,
    },
  );
  if (code !== 0) throw new Trouble(`npm could not install ${from}:\n${output}`);
  return home;
}

/**
 * Copies a version. `from`: the folder where it is installed; default: this checkout. `bumped`: with the next format of definitions.
 * `changes`: replacements by file within the packages.
 *
 * @param {string} dir
 * @param {string} name
 * @param {{ from?: string | undefined, bumped?: boolean, changes?: Record<string, [RegExp, string][]> }} [how]
 * @returns {string} the folder of the copy
 */
export function copyVersion(dir, name, { from, bumped = false, changes = {} } = {}) {
  const version = join(dir, name);
  const packages = join(version, "node_modules", "@carillon");
  if (from) cpSync(join(from, "node_modules"), join(version, "node_modules"), { recursive: true });
  else copyCheckout(packages);
  const bump = bumped ? { "core/dist/task.js": [FORMAT] } : {};
  for (const [path, replacements] of Object.entries({ ...bump, ...changes })) {
    const file = join(packages, path);
    const text = readFileSync(file, "utf8");
    const changed = replacements.reduce((before, [from, to]) => {
      if (before.search(from) < 0) throw new Error(`${file} has no ${from}.`);
      return before.replace(from, to);
    }, text);
    writeFileSync(file, changed);
  }
  return version;
}

function copyCheckout(packages) {
  for (const [part, from] of Object.entries({ ...PARTS, "scheduler-app": "apps/scheduler" })) {
    for (const what of ["dist", "lua", "package.json"]) {
      if (what === "lua" && part !== "store") continue;
      cpSync(join(root, from, what), join(packages, part, what), { recursive: true });
    }
  }
}

export function copies(dir) {
  return { current: copyVersion(dir, "current"), next: copyVersion(dir, "next", { bumped: true }) };
}

/** The SDK of a copy. */
export function sdkOf(version) {
  return import(pathToFileURL(join(version, "node_modules/@carillon/sdk/dist/index.js")).href);
}
