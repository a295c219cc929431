import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { pages, pagesIn, repository, withoutRepository } from "../lib/pages.mjs";
import { root } from "../lib/project.mjs";

/** The signatures of all exports, in the repository. The site has the reference instead, which says the same and more. */
export const API = "docs/api.md";
const REFERENCE = "scripts/site/reference";

const isIndex = (page) => page === `${REFERENCE}/index.md`;
const written = existsSync(join(root, REFERENCE)) ? pagesIn(REFERENCE) : [];
/** The pages of the reference, one for each entry point. */
export const reference = written.filter((page) => !isIndex(page)).sort();
/** Pages of the site, by their paths in the repository. */
export const sitePages = [...pages().filter((page) => page !== API), ...written];

/** Path of a page on the site: `docs/policies/README.md` is `policies/index.md`, `packages/sdk/README.md` is `packages/sdk.md`. */
export function routeOf(page) {
  if (page === "README.md") return "index.md";
  if (page === API) return "reference/index.md";
  return page
    .replace(`${REFERENCE}/`, "reference/")
    .replace(/^docs\//, "")
    .replace(/^(packages\/[^/]+|apps\/[^/]+|examples|deploy)\/README\.md$/, "$1.md")
    .replace(/README\.md$/, "index.md")
    .replace(/^[A-Z_]+(?=\.md$)/, (name) => name.toLowerCase());
}

const routes = new Map([...sitePages, API].map((page) => [page, routeOf(page)]));

/** Address on the site that a link of a page leads to: a page of the site, or else the file in the repository. */
export function hrefOf(page, link) {
  const [path, anchor] = withoutRepository(link).split("#");
  if (path === "" || /^[a-z]+:/.test(path)) return link;
  const target = posix.join(path.startsWith("/") ? "" : posix.dirname(page), path).replace(/^\/|\/$/g, "");
  // The reference has a page for each headline of the list of signatures.
  if (target === API && anchor) return `/reference/${anchor.replace(/^carillon/, "")}`;
  const route = routes.get(target) ?? routes.get(posix.join(target, "README.md"));
  const hash = anchor === undefined ? "" : `#${anchor}`;
  if (route) return `/${route.replace(/(^|\/)index\.md$/, "$1")}${hash}`;
  return `${repository}/${existsSync(join(root, target)) && !posix.extname(target) ? "tree" : "blob"}/main/${target}${hash}`;
}
