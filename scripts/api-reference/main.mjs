// npm run docs:api: writes docs/api.md, the signatures of all exports, and docs/operations-reference.md. With --check it writes nothing, and fails if one of
// the pages is stale. With --site it writes the reference of the site instead, which has docstrings too. Reads the declarations that the build
// made. A workspace of its own, because it needs a TypeScript before 7.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { publishedPackages } from "../lib/packages.mjs";
import { main, root, say } from "../lib/project.mjs";
import { operations } from "./operations.mjs";
import { referencePages, signatures } from "./signatures.mjs";

const SITE = "scripts/site/reference";
const HEAD = `# Public API

Every export of every package, with its signature: a change of the public API is a change of this file, which \`npm run docs:api\` writes. Your
editor shows the docstrings too, and so does the documentation's site.
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
  if (process.argv.includes("--site")) {
    rmSync(join(root, SITE), { recursive: true, force: true });
    mkdirSync(join(root, SITE));
    for (const [page, text] of referencePages(entries)) writeFileSync(join(root, SITE, page), text);
    return 0;
  }
  const pages = {
    "docs/api.md": [HEAD, ...signatures(entries)].join("\n"),
    "docs/operations-reference.md": operations(),
  };
  if (process.argv.includes("--check")) {
    const stale = Object.keys(pages).filter((page) => readFileSync(join(root, page), "utf8") !== pages[page]);
    if (stale.length === 0) return 0;
    say(`${stale.join(" and ")} stale. Run npm run docs:api and commit it.`);
    return 1;
  }
  for (const [page, text] of Object.entries(pages)) writeFileSync(join(root, page), text);
  say(`wrote ${Object.keys(pages).join(" and ")}`);
  return 0;
});
