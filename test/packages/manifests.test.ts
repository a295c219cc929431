import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { publishedPackages } from "../../scripts/lib/packages.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const manifestOf = (folder: string) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
const { homepage, repository, bugs, license } = manifestOf("");

const published = publishedPackages().map(({ folder }) => folder);

describe.each(published)("the manifest of %s", (folder) => {
  const manifest = manifestOf(folder);

  it("names the repository and the bug tracker", () => {
    const page = `${homepage.replace("#readme", "")}/tree/main/${folder}#readme`;
    expect(manifest).toMatchObject({
      homepage: page,
      repository: { ...repository, directory: folder },
      bugs,
      license,
    });
    expect(manifest.keywords).toContain("carillon");
  });

  it("packs the changelog, and no build info of the compiler", () => {
    expect(manifest.files).toEqual(expect.arrayContaining(["dist", "!dist/.tsbuildinfo", "CHANGELOG.md"]));
  });
});

it.each(published.filter((folder) => manifestOf(folder).exports))(
  "the manifest of %s names entry and types for those who do not read exports",
  (folder) => {
    const { main, types, exports } = manifestOf(folder);
    expect({ main, types }).toEqual({ main: exports["."].default, types: exports["."].types });
  },
);

it("an import compares with the cron-parser of BullMQ, of which there is one copy", () => {
  const { dependencies } = manifestOf("node_modules/bullmq");
  expect(manifestOf("apps/cli").devDependencies["cron-parser"]).toBe(dependencies["cron-parser"]);
  expect(existsSync(join(root, "node_modules/bullmq/node_modules/cron-parser"))).toBe(false);
});
