import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pack, publishedPackages } from "../lib/packages.mjs";
import { root, Trouble } from "../lib/project.mjs";

/**
 * One step for each published package: its tarball, as npm makes it, must be usable.
 * @returns {import("../lib/run.mjs").Step[]}
 */
export function packageSteps(tool) {
  return publishedPackages().map((one) => [`exports of ${one.manifest.name}`, () => checkPackage(one, tool)]);
}

async function checkPackage(one, tool) {
  const { folder, manifest } = one;
  const missing = ["README.md", "LICENSE"].filter((file) => !existsSync(join(root, folder, file)));
  if (missing.length > 0) return { code: 1, output: `${folder} has no ${missing.join(" and no ")}.` };

  const scratch = mkdtempSync(join(tmpdir(), "carillon-pack-"));
  try {
    const [tarball] = await pack([one], scratch);
    const lint = await tool("publint/src/cli.js", "run", tarball, "--strict");
    // A package with only a program has no exports to resolve.
    if (lint.code !== 0 || manifest.exports === undefined) return lint;
    return await tool(
      "@arethetypeswrong/cli/dist/index.js",
      tarball,
      // CommonJS files load the packages by require(esm), which this tool does not know. Old resolvers do not support
      // subpaths; ours serve our own packages and tests.
      "--exclude-entrypoints",
      "internal",
      "conditions",
      "--ignore-rules",
      "cjs-resolves-to-esm",
      "--format",
      "ascii",
    );
  } catch (error) {
    if (error instanceof Trouble) return { code: 1, output: error.message };
    throw error;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
