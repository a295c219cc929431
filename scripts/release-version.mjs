// npm run release:version: new versions and changelogs from the changesets, then the constants that contain the
// version.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "./lib/lock-file.mjs";
import { main, root } from "./lib/project.mjs";
import { run, runTool } from "./lib/run.mjs";

const CONSTANT = join(root, "packages/store/src/version.ts");

await main(async () => {
  const { code } = await runTool("@changesets/cli/bin.js", ["version"]);
  if (code !== 0) return code;
  const { version } = readJson("packages/store/package.json");
  const text = readFileSync(CONSTANT, "utf8");
  writeFileSync(CONSTANT, text.replace(/(VERSION: string = ")[^"]*/, `$1${version}`));
  // The lock file contains our versions too.
  return (await run("npm", ["install", "--package-lock-only"])).code;
});
