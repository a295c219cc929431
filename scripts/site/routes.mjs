import { existsSync } from "node:fs";
import { posix } from "node:path";
import { pages, repository, withoutRepository } from "../lib/pages.mjs";

/** Path of a page on the site: `docs/policies/README.md` is `policies/index.md`, `packages/sdk/README.md` is `packages/sdk.md`. */
export function routeOf(page) {
  if (page === "README.md") return "index.md";
  return page
    .replace(/^docs\//, "")
    .replace(/^(packages\/[^/]+|apps\/[^/]+|examples|deploy)\/README\.md$/, "$1.md")
    .replace(/README\.md$/, "index.md")
    .replace(/^[A-Z_]+(?=\.md$)/, (name) => name.toLowerCase());
}

const routes = new Map(pages().map((page) => [page, routeOf(page)]));

/** Address on the site that a link of a page leads to: a page of the site, or else the file in the repository. */
export function hrefOf(page, link) {
  const [path, anchor] = withoutRepository(link).split("#");
  if (path === "" || /^[a-z]+:/.test(path)) return link;
  const target = posix.join(path.startsWith("/") ? "" : posix.dirname(page), path).replace(/^\/|\/$/g, "");
  const route = routes.get(target) ?? routes.get(posix.join(target, "README.md"));
  const hash = anchor === undefined ? "" : `#${anchor}`;
  if (route) return `/${route.replace(/(^|\/)index\.md$/, "$1")}${hash}`;
  return `${repository}/${existsSync(target) && !posix.extname(target) ? "tree" : "blob"}/main/${target}${hash}`;
}
