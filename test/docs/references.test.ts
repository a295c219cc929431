import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { afterFirstRelease } from "../../scripts/lib/first-release.mjs";
import { publishedPackages } from "../../scripts/lib/packages.mjs";
import { pages as allPages, anchorOf, pagesIn, textOf, withoutRepository } from "../../scripts/lib/pages.mjs";
import { root } from "../../scripts/lib/project.mjs";
import { API } from "../../scripts/site/routes.mjs";
import { sections } from "../../scripts/site/sidebar.mjs";

const pages = allPages();

/** Leaves out code blocks: text in them may look like a link. */
const proseOf = (page: string) => textOf(page).replace(/^```[\s\S]*?^```/gm, "");

const anchorsBefore = new Map<string, Set<string>>();

/** Anchors as GitHub makes them from headlines, and those that the page has in HTML. */
function anchorsOf(page: string): Set<string> {
  const known = anchorsBefore.get(page);
  if (known) return known;
  const anchors = new Set([...proseOf(page).matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id));
  for (const [, title = ""] of proseOf(page).matchAll(/^#+ (.*)$/gm)) {
    const anchor = anchorOf(title.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
    let name = anchor;
    for (let n = 1; anchors.has(name); n++) name = `${anchor}-${n}`;
    anchors.add(name);
  }
  anchorsBefore.set(page, anchors);
  return anchors;
}

function wrongLink(page: string, link: string): string | undefined {
  const [path = "", anchor] = withoutRepository(link).split("#");
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

  it("is on the site: each page of docs/ once, and only pages that exist", () => {
    const shown = sections.flatMap(({ items }) => items.map(({ page }) => page));
    expect(shown.filter((page) => wrongLink("README.md", page))).toEqual([]);
    expect(new Set(shown).size).toBe(shown.length);
    expect(pages.filter((page) => page.startsWith("docs/") && !shown.includes(page))).toEqual([]);
  });

  it("has no line on the site of more than 260 characters, but in tables, pictures and code", () => {
    const shown = new Set(sections.flatMap(({ items }) => items.map(({ page }) => page.split("#")[0] ?? "")));
    const long = [...shown].flatMap((page) =>
      proseOf(page)
        .split("\n")
        .filter((line) => line.length > 260 && !/^\||^ *<img /.test(line))
        .map((line) => `${page}: ${line.slice(0, 80)}`),
    );
    expect(long).toEqual([]);
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

  it("says how to install what is not published yet, and what a release makes of it", () => {
    const asks = pages.filter((page) => /^(?:REDIS_URL=\S+ )?np[mx] .*@carillon\//m.test(textOf(page)));
    expect(asks.length).toBeGreaterThan(6);
    const names = publishedPackages().map(({ manifest }) => manifest.name);
    for (const page of asks) {
      expect(textOf(page), page).toContain("npm run try");
      const later = afterFirstRelease(textOf(page));
      expect(later, page).not.toMatch(/first release -->|from then on|npm run try/);
      for (const [name] of later.matchAll(/@carillon\/[a-z-]+(?=[\s`]|$)/g))
        expect(names, page).toContain(name);
    }
    expect(afterFirstRelease(textOf("README.md"))).toMatch(
      /An app of your own\n\nAn empty folder.*\n\n```sh\nnpm init -y\nnpm install @carillon\/sdk.*\n```\n\nOne file/,
    );
  });

  it("says on each page that uses @carillon/ops how to install it", () => {
    const uses = pages.filter(
      (page) => page !== API && /(= |await )operatorOf\(|from "@carillon\/ops"/.test(textOf(page)),
    );
    expect(uses.length).toBeGreaterThan(7);
    expect(uses.filter((page) => !/npm install @carillon\/ops\b/.test(textOf(page)))).toEqual([]);
  });

  it("names existing tests", () => {
    const named = ["SECURITY.md", "docs/guarantees.md", "docs/chaos.md"].flatMap((page) => [
      ...textOf(page).matchAll(/`((?:packages|apps|test)\/[^`\s]+\.test\.ts)`/g),
    ]);
    expect(named.length).toBeGreaterThan(20);
    for (const [, path = ""] of named) expect(existsSync(join(root, path)), path).toBe(true);
  });

  it("bounds the stop of a worker in the same words wherever it is to be copied", () => {
    const bounded = ["apps/cli/template/src/main.ts", "packages/sdk/README.md"];
    const stops = bounded.map(
      (page) => /^for \(const signal of[\s\S]*?await worker\.stop\(.*$/m.exec(textOf(page))?.[0],
    );
    expect(stops[0]).toMatch(/process\.exit.*unref[\s\S]*within/);
    for (const stop of stops) expect(stop).toBe(stops[0]);
  });
});
