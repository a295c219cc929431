import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { anchorOf, pages, repository, textOf } from "../../lib/pages.mjs";
import { root, stateDir } from "../../lib/project.mjs";
import { deadAnchors } from "../anchors.mjs";
import { hrefOf, routeOf } from "../routes.mjs";
import { sections } from "../sidebar.mjs";

const DESCRIPTION =
  "A distributed scheduler for Node.js on Redis and BullMQ: each occurrence becomes exactly one job.";
const known = new Set(pages());

/** Makes a link of a page in the repository one of the site, and keeps Vue from reading `{{ }}` in code. */
function forSite(md) {
  md.core.ruler.push("for-site", ({ tokens, env }) => {
    const page = env.realPath?.slice(root.length + 1);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === "code_inline") token.attrSet("v-pre", "");
      if (token.type === "link_open" && known.has(page))
        token.attrSet("href", hrefOf(page, token.attrGet("href")));
    }
  });
}

/** Writes each page as Markdown beside its HTML, and llms.txt, a list of them. */
function writeMarkdown(outDir, base) {
  for (const page of known) {
    const file = join(outDir, routeOf(page));
    mkdirSync(dirname(file), { recursive: true });
    copyFileSync(join(root, page), file);
  }
  const lines = sections.flatMap(({ text, items }) => [
    `\n## ${text}\n`,
    ...items.map(({ text: title, page }) => {
      const [path, anchor] = page.split("#");
      return `- [${title}](${base}${routeOf(path)}${anchor ? `#${anchor}` : ""}): ${summaryOf(path)}`;
    }),
  ]);
  writeFileSync(join(outDir, "llms.txt"), `# Carillon\n\n> ${DESCRIPTION}\n${lines.join("\n")}\n`);
}

/** The first sentence of a page. */
function summaryOf(page) {
  const prose = textOf(page).replace(/^```[\s\S]*?^```|<!--.*?-->/gm, "");
  const [first = ""] = prose.match(/^[\w"*'[].+(\n.+)*/m) ?? [];
  const plain = first.replace(/\n/g, " ").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return plain
    .replaceAll("**", "")
    .split(/(?<=[.:]) /)[0]
    .replace(/:$/, ".");
}

/** Resolves Vue for the pages, which lie outside of this project. */
const vueForPages = {
  name: "vue-for-pages",
  enforce: /** @type {const} */ ("pre"),
  resolveId(id, importer = "", { ssr }) {
    if (!/^vue(\/|$)/.test(id)) return null;
    if (ssr) return { id, external: true };
    return importer.endsWith(".md")
      ? this.resolve(id, fileURLToPath(import.meta.url), { skipSelf: true })
      : null;
  },
};

export default {
  title: "Carillon",
  description: DESCRIPTION,
  srcDir: root,
  outDir: stateDir("site"),
  cacheDir: stateDir("site-cache"),
  srcExclude: ["test/**", "scripts/**", "**/template/**"],
  rewrites: routeOf,
  lastUpdated: true,
  vite: { plugins: [vueForPages] },
  markdown: { anchor: { slugify: anchorOf }, config: forSite },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: sections.map(({ text, items }, n) => ({
      text,
      collapsed: n > 1,
      items: items.map(({ text: title, page }) => ({ text: title, link: hrefOf("README.md", page) })),
    })),
    nav: [
      { text: "Start", link: "/" },
      { text: "Policies", link: "/policies/" },
      { text: "Deployment", link: "/deployment" },
      { text: "Reference", link: "/packages/sdk" },
    ],
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/:path` },
  },
  buildEnd({ outDir, site }) {
    writeMarkdown(outDir, site.base);
    const dead = deadAnchors(outDir, site.base);
    if (dead.length > 0) throw new Error(`These links lead to no headline:\n${dead.join("\n")}`);
  },
};
