import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "./lock-file.mjs";
import { root, Trouble } from "./project.mjs";
import { run } from "./run.mjs";

/**
 * @typedef {object} Package
 * @property {string} folder from the root of the repository
 * @property {any} manifest
 */

/**
 * The packages that are published.
 *
 * @returns {Package[]}
 */
export function publishedPackages() {
  return ["packages", "apps"]
    .flatMap((parent) => readdirSync(join(root, parent)).map((name) => join(parent, name)))
    .filter((folder) => existsSync(join(root, folder, "package.json")))
    .map((folder) => ({ folder, manifest: readJson(folder, "package.json") }))
    .filter(({ manifest }) => !manifest.private);
}

/**
 * Makes a package's tarball in `destination`, with the files that npm would publish. Returns its path.
 *
 * @param {Package} one
 * @param {string} destination
 */
export async function pack({ folder, manifest }, destination) {
  const args = ["pack", "--silent", "--pack-destination", destination];
  const { code, output } = await run("npm", args, { cwd: join(root, folder), capture: true });
  if (code !== 0) throw new Trouble(`npm pack of ${manifest.name} failed:\n${output}`);
  return join(destination, `${manifest.name.replace("@", "").replace("/", "-")}-${manifest.version}.tgz`);
}
