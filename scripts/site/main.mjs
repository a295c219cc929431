// npm run docs serves the site, npm run docs:build builds it to .carillon/site and fails on a dead link. A project of its own, so that npm ci
// at the root need not install the generator.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { main, root } from "../lib/project.mjs";
import { run } from "../lib/run.mjs";
import { setUp } from "../lib/setup.mjs";

await main(async () => {
  await setUp();
  const reference = await run(process.execPath, ["scripts/api-reference/main.mjs", "--site"]);
  if (reference.code !== 0) return reference.code;
  const cwd = join(root, "scripts/site");
  if (!existsSync(join(cwd, "node_modules/vitepress"))) {
    const { code } = await run("npm", ["ci", "--ignore-scripts"], { cwd });
    if (code !== 0) return code;
  }
  const vitepress = join(cwd, "node_modules/vitepress/bin/vitepress.js");
  return (await run(process.execPath, [vitepress, ...process.argv.slice(2)], { cwd })).code;
});
