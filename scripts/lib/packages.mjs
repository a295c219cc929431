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
 * Makes the tarballs of packages in `destination`, with the files that npm would publish. Returns their paths.
 *
 * @param {readonly Package[]} packages
 * @param {string} destination
 */
export async function pack(packages, destination) {
  const folders = packages.map(({ folder }) => `./${folder}`);
  const args = ["pack", "--silent", "--pack-destination", destination, ...folders];
  const { code, output } = await run("npm", args, { cwd: root, capture: true });
  if (code !== 0) throw new Trouble(`npm pack failed:\n${output}`);
  return packages.map(({ manifest: { name, version } }) =>
    join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`),
  );
}
