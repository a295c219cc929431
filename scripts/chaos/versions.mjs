// Copies of the built packages that nodes run from: this version, and a next one that writes a newer format of definitions.
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, stateDir } from "../lib/project.mjs";

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
 * Copies this version. `bumped`: with the next format of definitions. `changes`: replacements by file within the packages.
 *
 * @param {string} dir
 * @param {string} name
 * @param {{ bumped?: boolean, changes?: Record<string, [RegExp, string][]> }} [how]
 * @returns {string} the folder of the copy
 */
export function copyVersion(dir, name, { bumped = false, changes = {} } = {}) {
  const version = join(dir, name);
  const packages = join(version, "node_modules", "@carillon");
  for (const [part, from] of Object.entries({ ...PARTS, "scheduler-app": "apps/scheduler" })) {
    for (const what of ["dist", "lua", "package.json"]) {
      if (what === "lua" && part !== "store") continue;
      cpSync(join(root, from, what), join(packages, part, what), { recursive: true });
    }
  }
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

export function copies(dir) {
  return { current: copyVersion(dir, "current"), next: copyVersion(dir, "next", { bumped: true }) };
}

/** The SDK of a copy. */
export function sdkOf(version) {
  return import(pathToFileURL(join(version, "node_modules/@carillon/sdk/dist/index.js")).href);
}
