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
const FORMAT = /(export const FORMAT_VERSION = )(\d+)/;

/** A folder of this run below the checkout, so that dependencies are found; it is deleted with the process. */
export function runDir() {
  const dir = stateDir("chaos", String(process.pid));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** @returns {string} the folder of the copy */
function copyVersion(dir, name, { bumped = false } = {}) {
  const version = join(dir, name);
  const packages = join(version, "node_modules", "@carillon");
  for (const [part, from] of Object.entries({ ...PARTS, "scheduler-app": "apps/scheduler" })) {
    for (const what of ["dist", "lua", "package.json"]) {
      if (what === "lua" && part !== "store") continue;
      cpSync(join(root, from, what), join(packages, part, what), { recursive: true });
    }
  }
  if (bumped) {
    const file = join(packages, "core", "dist", "task.js");
    const text = readFileSync(file, "utf8");
    if (!FORMAT.test(text)) throw new Error(`${file} names no format version.`);
    writeFileSync(
      file,
      text.replace(FORMAT, (_all, before, format) => `${before}${Number(format) + 1}`),
    );
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
