// npm run release:version: new versions and changelogs from the changesets, also the one of all packages, then the constants that contain the
// version, and the pages that say how to install what is published.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeFirstRelease } from "./lib/first-release.mjs";
import { readJson } from "./lib/lock-file.mjs";
import { main, root } from "./lib/project.mjs";
import { addToChangelog, releaseNotes } from "./lib/release-notes.mjs";
import { run, runTool } from "./lib/run.mjs";

const CONSTANT = join(root, "packages/store/src/version.ts");

await main(async () => {
  const notes = releaseNotes(); // before the tool deletes the changesets
  const { code } = await runTool("@changesets/cli/bin.js", ["version"]);
  if (code !== 0) return code;
  const { version } = readJson("packages/store/package.json");
  const text = readFileSync(CONSTANT, "utf8");
  writeFileSync(CONSTANT, text.replace(/(VERSION: string = ")[^"]*/, `$1${version}`));
  addToChangelog(version, notes);
  writeFirstRelease();
  // The lock file contains our versions too.
  return (await run("npm", ["install", "--package-lock-only"])).code;
});
