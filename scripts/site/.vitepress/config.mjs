import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { logo } from "../../../apps/console/dist/pages.js";
import { anchorOf, repository, textOf, withoutRepository } from "../../lib/pages.mjs";
import { root, stateDir } from "../../lib/project.mjs";
import { deadAnchors } from "../anchors.mjs";
import { API, hrefOf, reference, routeOf, sitePages } from "../routes.mjs";
import { sections } from "../sidebar.mjs";

const DESCRIPTION =
  "A distributed scheduler for Node.js on Redis and BullMQ: each occurrence becomes exactly one job.";
const ICON = `data:image/svg+xml,${encodeURIComponent(logo("good"))}`;
const known = new Set(sitePages);

/** A picture of a page, for light and for dark. */
const PICTURE =
  /<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img src="([^"]+)"(.*)>\s*<\/picture>/;

/** Makes a link of a page in the repository one of the site, and keeps Vue from reading `{{ }}` in code. Draws diagrams and pictures. */
function forSite(md) {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (tokens, i, ...rest) =>
    tokens[i].info === "mermaid"
      ? `<Mermaid text="${md.utils.escapeHtml(tokens[i].content)}" />`
      : fence(tokens, i, ...rest);
  md.core.ruler.push("for-site", ({ tokens, env }) => {
    const page = env.realPath?.slice(root.length + 1);
    if (!known.has(page)) return; // the search reads texts alone
    for (const token of tokens) {
      // The site has a switch for dark, which `prefers-color-scheme` does not follow.
      token.content = token.content.replace(PICTURE, (_all, dark, light, rest) =>
        [
          ["light", light],
          ["dark", dark],
        ]
          .map(([look, src]) => `<img class="in-${look}" src="${fileOf(page, src)}"${rest} loading="lazy">`)
          .join(""),
      );
    }
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === "code_inline") token.attrSet("v-pre", "");
      if (token.type === "link_open") token.attrSet("href", hrefOf(page, token.attrGet("href")));
    }
  });
}

/** Path of a picture from its page. */
function fileOf(page, src) {
  const file = withoutRepository(src);
  return file === src ? `./${src}` : posix.relative(`/${posix.dirname(page)}`, file);
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

/** Former addresses of pages, and where their content is now. */
const MOVED = { operations: "operations-reference", simulation: "chaos#simulation" };

function writeRedirects(outDir) {
  for (const [from, to] of Object.entries(MOVED)) {
    const [page, anchor] = to.split("#");
    const href = `./${page}.html${anchor ? `#${anchor}` : ""}`;
    const text = `<!doctype html><title>Moved</title><meta http-equiv="refresh" content="0; url=${href}"><a href="${href}">Moved</a>\n`;
    writeFileSync(join(outDir, `${from}.html`), text);
  }
}

/** Entry of the sidebar for a page of the reference. */
function exportsOf(page) {
  return { text: textOf(page).split("\n", 1)[0].replace("# ", ""), link: hrefOf("README.md", page) };
}

/** The first sentence of a page. */
function summaryOf(page) {
  const prose = textOf(page).replace(/^```[\s\S]*?^```|<!--.*?-->/gm, "");
  const blocks = prose.split(/\n{2,}/).map((block) => block.trim());
  const first =
    blocks.find((block) => /^(?!\*\*[^*]+\*\*$)[\w"`(*'[]/.test(block) && block.includes(" ")) ?? "";
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
  srcExclude: ["test/**", "scripts/!(site)/**", "**/template/**", API],
  rewrites: routeOf,
  lastUpdated: true,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: ICON }]],
  vite: { plugins: [vueForPages] },
  markdown: {
    anchor: { slugify: anchorOf },
    config: forSite,
    codeTransformers: [
      {
        // On a busy machine, code would be coloured only in part.
        preprocess(_code, options) {
          options.tokenizeTimeLimit = 0;
        },
      },
    ],
  },
  themeConfig: {
    logo: ICON,
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: sections.map(({ text, items }, n) => ({
      text,
      collapsed: n > 1,
      items: items.map(({ text: title, page }) => ({
        text: title,
        link: hrefOf("README.md", page),
        ...(page === API && { collapsed: true, items: reference.map(exportsOf) }),
      })),
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
    writeRedirects(outDir);
    const dead = deadAnchors(outDir, site.base);
    if (dead.length > 0) throw new Error(`These links lead to no headline:\n${dead.join("\n")}`);
  },
};
