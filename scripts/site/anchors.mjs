import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Links of the built pages whose anchor their target does not have. VitePress itself checks only that the page exists. */
export function deadAnchors(dir, base) {
  const files = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".html"),
  );
  const built = new Map(files.map((file) => [`${base}${file}`, readFileSync(join(dir, file), "utf8")]));
  const ids = new Map([...built].map(([at, html]) => [at, new Set(html.match(/(?<=\sid=")[^"]+/g))]));
  return [...built].flatMap(([at, html]) =>
    [...new Set(html.match(/(?<=\shref=")[^"]*#[^"]+/g))].flatMap((href) => {
      const { pathname, hash, host } = new URL(href, `http://site${at}`);
      const target = ids.get(pathname.endsWith("/") ? `${pathname}index.html` : pathname);
      if (host !== "site" || target?.has(decodeURIComponent(hash.slice(1)))) return [];
      return [`${at}: ${href}`];
    }),
  );
}
