// npm run docs:api: writes docs/api.md, the signatures of all exports, docs/operations.md, and with docstrings .carillon/api. With --check it
// writes nothing, and fails if one of the pages is stale. Reads the declarations that the build made. A workspace of its own, because typedoc
// needs a TypeScript before 7.
import { readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { Application } from "typedoc";
import { publishedPackages } from "../lib/packages.mjs";
import { main, root, say, stateDir, Trouble } from "../lib/project.mjs";
import { operations } from "./operations.mjs";
import { signatures } from "./signatures.mjs";

const HEAD = `# Public API

Every export of every package, with its signature: a change of the public API is a change of this file. \`npm run docs:api\` writes it, and
writes the reference with all docstrings to \`.carillon/api\`. Your editor shows the docstrings too.
`;

await main(async () => {
  const entries = publishedPackages().flatMap(({ folder, manifest }) =>
    Object.entries(manifest.exports ?? {})
      .filter(([path, { types }]) => types && path !== "./internal")
      .map(([path, { types }]) => ({
        name: posix.join(manifest.name, path),
        file: join(root, folder, types),
      })),
  );
  const pages = {
    "docs/api.md": [HEAD, ...signatures(entries)].join("\n"),
    "docs/operations.md": operations(),
  };
  if (process.argv.includes("--check")) {
    const stale = Object.keys(pages).filter((page) => readFileSync(join(root, page), "utf8") !== pages[page]);
    if (stale.length === 0) return 0;
    say(`${stale.join(" and ")} stale. Run npm run docs:api and commit it.`);
    return 1;
  }
  for (const [page, text] of Object.entries(pages)) writeFileSync(join(root, page), text);
  await writeReference(entries);
  say(`wrote ${Object.keys(pages).join(", ")} and .carillon/api/index.html`);
  return 0;
});

async function writeReference(entries) {
  const app = await Application.bootstrapWithPlugins(
    {
      name: "Carillon",
      entryPoints: entries.map(({ file }) => file),
      out: stateDir("api"),
      logLevel: "Error",
      readme: "none",
      excludeExternals: true,
      disableSources: true,
      skipErrorChecking: true,
      compilerOptions: {
        module: "nodenext",
        target: "es2023",
        strict: true,
        exactOptionalPropertyTypes: true,
      },
    },
    // Without readers of configuration files: a tsconfig.json names sources, and these are declarations.
    [],
  );
  const project = await app.convert();
  if (!project) throw new Trouble("The reference could not be made from the declarations.");
  for (const module of project.children ?? [])
    module.name = module.name.replace(/^\w+\/(\w+)\/dist/, "@carillon/$1");
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Trouble("The reference could not be written: see the errors above.");
}
