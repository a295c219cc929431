import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../lib/project.mjs";
import { run } from "../lib/run.mjs";

/** One step for each package that is published: its tarball, as npm makes it, must be usable. */
export function packageSteps(tool) {
  return workspaces()
    .filter(({ manifest }) => !manifest.private)
    .map((workspace) => [`exports of ${workspace.manifest.name}`, () => checkPackage(workspace, tool)]);
}

async function checkPackage({ dir, manifest }, tool) {
  const missing = ["README.md", "LICENSE"].filter((file) => !existsSync(join(dir, file)));
  if (missing.length > 0) return { code: 1, output: `${dir} has no ${missing.join(" and no ")}.` };

  const scratch = mkdtempSync(join(tmpdir(), "carillon-pack-"));
  try {
    const packed = await run("npm", ["pack", "--silent", "--pack-destination", scratch], {
      cwd: dir,
      capture: true,
    });
    if (packed.code !== 0) return packed;
    const tarball = join(scratch, readdirSync(scratch)[0]);
    const lint = await tool("publint/src/cli.js", "run", tarball, "--strict");
    // A package with only a program exports nothing that could be resolved.
    if (lint.code !== 0 || manifest.exports === undefined) return lint;
    return await tool(
      "@arethetypeswrong/cli/dist/index.js",
      tarball,
      "--profile",
      "esm-only",
      "--format",
      "ascii",
    );
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function workspaces() {
  return ["packages", "apps"]
    .flatMap((parent) => readdirSync(join(root, parent)).map((name) => join(root, parent, name)))
    .filter((dir) => existsSync(join(dir, "package.json")))
    .map((dir) => ({ dir, manifest: JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) }));
}
