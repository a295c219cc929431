import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pack, publishedPackages } from "../../scripts/lib/packages.mjs";

const execute = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

export type Published = ReturnType<typeof publishedPackages>[number];

/** The published packages whose folder matches. */
export function published(folder: RegExp): Published[] {
  return publishedPackages().filter((one) => folder.test(one.folder));
}

/**
 * Installs packed packages into a new folder, with only the dependencies that they ask for, and `others`, which are those of
 * this repository. Returns the folder.
 */
export async function installPacked(
  packages: readonly Published[],
  others: readonly string[],
): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), "carillon-consumers-"));
  const modules = join(home, "node_modules");
  await mkdir(join(modules, ".bin"), { recursive: true });
  const needed = new Map(others.map((name) => [name, root]));
  const tarballs = await pack(packages, home);
  for (const [n, one] of packages.entries()) {
    const { name, bin, dependencies, peerDependencies } = one.manifest;
    const target = join(modules, name);
    await mkdir(target, { recursive: true });
    await execute("tar", ["-xzf", tarballs[n] as string, "--strip-components=1", "-C", target]);
    for (const [command, file] of Object.entries<string>(bin ?? {}))
      await symlink(join(target, file), join(modules, ".bin", command));
    for (const dependency of Object.keys({ ...dependencies, ...peerDependencies })) {
      const own = join(root, one.folder);
      needed.set(dependency, existsSync(join(own, "node_modules", dependency)) ? own : root);
    }
  }
  for (const [name, from] of needed) {
    if (name.startsWith("@carillon/")) continue;
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(from, "node_modules", name), join(modules, name));
  }
  for (const command of ["tsc", "tsx"]) {
    const file = join(root, "node_modules", ".bin", command);
    await symlink(file, join(modules, ".bin", command));
  }
  return home;
}
