import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./project.mjs";

export function readJson(...path) {
  return JSON.parse(readFileSync(join(root, ...path), "utf8"));
}

/** The packages of the lock file: ours (by folder) and those from the registry (by their place of installation). */
export function readLock(folder = root) {
  const entries = Object.entries(
    JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages,
  );
  return {
    ours: entries.filter(([at]) => !at.includes("node_modules/")),
    links: entries.filter(([, entry]) => entry.link),
    foreign: entries
      .filter(([at, entry]) => at.includes("node_modules/") && !entry.link)
      .map(([at, entry]) => ({ at, name: nameOf(at), ...entry, development: Boolean(entry.dev) })),
  };
}

function nameOf(at) {
  return at.slice(at.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** The manifest of an installed package. Undefined if it is for another system, and not installed. */
export function installed(at, folder = root) {
  const file = join(folder, at, "package.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}
