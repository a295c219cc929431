import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Folders of others' pages, and of an app that `carillon init` writes, whose scripts are its own. */
const OTHERS = ["node_modules", "dist", "template"];

function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return OTHERS.includes(entry.name) ? [] : pagesIn(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

const pages = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...["docs", "examples", "packages", "apps"].flatMap(pagesIn),
];
const textOf = (page: string) => readFileSync(join(root, page), "utf8");

/** Leaves out code blocks: text in them may look like a link. */
const proseOf = (page: string) => textOf(page).replace(/^```[\s\S]*?^```/gm, "");

const anchorsBefore = new Map<string, Set<string>>();

/** Anchors as GitHub makes them from headlines, and those that the page has in HTML. */
function anchorsOf(page: string): Set<string> {
  const known = anchorsBefore.get(page);
  if (known) return known;
  const anchors = new Set([...proseOf(page).matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id));
  for (const [, title = ""] of proseOf(page).matchAll(/^#+ (.*)$/gm)) {
    const plain = title.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
    let name = anchor;
    for (let n = 1; anchors.has(name); n++) name = `${anchor}-${n}`;
    anchors.add(name);
  }
  anchorsBefore.set(page, anchors);
  return anchors;
}

/** Address of the repository. READMEs of packages link there, because they are also read outside of the checkout. */
const repository: string = JSON.parse(textOf("package.json")).homepage.replace("#readme", "");

function wrongLink(page: string, link: string): string | undefined {
  const [path = "", anchor] = link.replace(new RegExp(`^${repository}/(blob|tree)/main`), "").split("#");
  if (/^[a-z]+:/.test(path)) return undefined;
  const at = path.startsWith("/") ? "" : dirname(page);
  const target = path === "" ? page : relative(root, join(root, at, path));
  if (!existsSync(join(root, target))) return `${page}: ${link} leads to nothing`;
  if (anchor === undefined || statSync(join(root, target)).isDirectory()) return undefined;
  return anchorsOf(target).has(anchor) ? undefined : `${page}: ${link} names no headline`;
}

describe("the documentation", () => {
  it("has no broken links", () => {
    const wrong = pages.flatMap((page) =>
      [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => wrongLink(page, link) ?? []),
    );
    expect(wrong).toEqual([]);
  });

  it("links from a published package only to what is packed, or to the repository", () => {
    const outside = ["packages", "apps"].flatMap(pagesIn).flatMap((page) => {
      const manifest = JSON.parse(textOf(join(page.split("/", 2).join("/"), "package.json")));
      const links = [...proseOf(page).matchAll(/\]\((\.\.[^)\s]*)\)/g)].map(([, link]) => `${page}: ${link}`);
      return manifest.private ? [] : links;
    });
    expect(outside).toEqual([]);
  });

  it("names kinds of faults as `npm run chaos -- --only` takes them", () => {
    const faults = join(root, "scripts/chaos/faults");
    const code = readdirSync(faults).map((file) => readFileSync(join(faults, file), "utf8"));
    const named = textOf("docs/guarantees.md").matchAll(/\bchaos (`[^`]+`(?:, `[^`]+`)*)/g);
    const kinds = [...named].flatMap(([, list = ""]) => list.match(/[^`]+(?=`(?:,|$))/g) ?? []);
    const own = kinds.filter((kind) => !kind.startsWith("--"));
    expect(own.length).toBeGreaterThan(20);
    for (const kind of own)
      expect(
        code.some((text) => text.includes(`"${kind}"`)),
        kind,
      ).toBe(true);
  });

  it("names existing npm scripts, and so do the workflows", () => {
    const { scripts } = JSON.parse(textOf("package.json"));
    const workflows = readdirSync(join(root, ".github/workflows")).map((file) => `.github/workflows/${file}`);
    // Published packages and the template of `create` name scripts of other projects.
    const own = pages.filter((one) => !/^packages\/|\/template\//.test(one));
    for (const page of [...own, ...workflows]) {
      const named = textOf(page).matchAll(/\bnpm run ([a-z0-9:-]+)/g);
      for (const [, name = ""] of named) expect(Object.keys(scripts), page).toContain(name);
    }
  });

  it("names existing tests", () => {
    const named = ["docs/guarantees.md", "docs/chaos.md", "docs/simulation.md"].flatMap((page) => [
      ...textOf(page).matchAll(/`((?:packages|apps|test)\/[^`\s]+\.test\.ts)`/g),
    ]);
    expect(named.length).toBeGreaterThan(20);
    for (const [, path = ""] of named) expect(existsSync(join(root, path)), path).toBe(true);
  });
});
