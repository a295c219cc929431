import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./project.mjs";

/** Folders of foreign pages, and of an app that `carillon init` writes. */
const FOREIGN = ["node_modules", "dist", "template"];

/** The pages in a folder and below it, by their paths from the root. */
export function pagesIn(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return FOREIGN.includes(entry.name) ? [] : pagesIn(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** All pages of the documentation, by their paths from the root. */
export const pages = () => [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...["docs", "examples", "packages", "apps", "deploy"].flatMap(pagesIn),
];

export const textOf = (page) => readFileSync(join(root, page), "utf8");

/** The anchor that GitHub makes from a headline in plain text. The site uses the same. */
export function anchorOf(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

/** Address of the repository. */
export const repository = JSON.parse(textOf("package.json")).homepage.replace("#readme", "");

/** Removes the repository's address from a link, which becomes a path from the root. */
export const withoutRepository = (link) =>
  link.replace(new RegExp(`^${repository}/(blob|tree|raw)/main(?=/|$)`), "");
