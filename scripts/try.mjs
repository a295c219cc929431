// npm run try FOLDER: packs the packages of this checkout and installs them into a folder, which is made if there is none, with what an app
// of one's own needs. After an edit here, run it again.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { pack, publishedPackages } from "./lib/packages.mjs";
import { main, root, say, Trouble } from "./lib/project.mjs";
import { run } from "./lib/run.mjs";
import { setUp } from "./lib/setup.mjs";

await main(async () => {
  const given = process.argv[2];
  if (given === undefined) throw new Trouble("no folder is named. Give one: npm run try ../my-app");
  const folder = resolve(process.env.INIT_CWD ?? ".", given);
  if (!relative(root, folder).startsWith(".."))
    throw new Trouble(`${folder} is in this checkout. Name a folder outside of it.`);
  await setUp();
  mkdirSync(join(folder, "carillon"), { recursive: true });
  const npm = (...args) => run("npm", args, { cwd: folder, capture: true });
  if (!existsSync(join(folder, "package.json"))) await npm("init", "-y");
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  // The package for NestJS goes only into an app that has NestJS: npm would install all of it.
  const wanted = publishedPackages().filter(
    ({ manifest: { peerDependencies } }) =>
      !peerDependencies?.["@nestjs/core"] || dependencies?.["@nestjs/core"],
  );
  const tarballs = await pack(wanted, join(folder, "carillon"));
  const { code, output } = await npm("install", "--no-audit", "--no-fund", ...tarballs, "zod");
  if (code !== 0) throw new Trouble(`npm install in ${folder} failed:\n${output}`);
  say(`installed ${wanted.map(({ manifest }) => manifest.name).join(", ")} and zod`);
  say(`its folder carillon has their tarballs, and must stay. Next: cd ${folder}, npx carillon dev FILE`);
  return 0;
});
