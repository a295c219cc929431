import { join } from "node:path";
import { stateDir, Trouble } from "./project.mjs";
import { run } from "./run.mjs";

/** The versions of Node.js that a release supports. */
export const NODES = [20, 22, 24];

/**
 * The program of a runtime, such as `node@24` or `bun@1`: the running one, or that of npm's package of this name.
 *
 * @param {string} spec
 * @returns {Promise<string>}
 */
export async function runtime(spec) {
  if (spec === `node@${process.versions.node.split(".")[0]}`) return process.execPath;
  return join(await installed(spec), ".bin", spec.split("@")[0] ?? "");
}

/**
 * The `node_modules` that has a package of npm, such as `bullmq@4`, and what it needs, apart from ours.
 *
 * @param {string} spec
 * @returns {Promise<string>}
 */
export async function installed(spec) {
  const home = stateDir("runtimes", spec);
  const args = ["install", "--prefix", home, "--no-audit", "--no-fund", spec];
  const { code, output } = await run("npm", args, { capture: true });
  if (code !== 0) throw new Trouble(`npm install ${spec} failed:\n${output}`);
  return join(home, "node_modules");
}
