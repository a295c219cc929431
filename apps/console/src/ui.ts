import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { accepts } from "hono/accepts";
import type { Ctx, Middleware } from "./context.js";
import { RequestError } from "./errors.js";
import { KEPT_FOR_EVER } from "./headers.js";
import { wantsPage } from "./paths.js";

/** Written by the build of `ui`; the same folder from `src` and from `dist`. */
const FOLDER = new URL("../dist/ui/", import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".woff2": "font/woff2",
};

interface Asset {
  readonly type: string;
  readonly raw: Uint8Array<ArrayBuffer>;
  readonly zipped: Uint8Array<ArrayBuffer>;
}

/** Serves the pages: one document for each of their addresses, and its scripts and styles, which anyone may read. */
export class Ui {
  #read: { document: string; assets: ReadonlyMap<string, Asset> } | undefined;

  /** @param basePath where the console is mounted: "" or `/ops/carillon` */
  constructor(private readonly basePath: string) {}

  /** Read once, at the first request. */
  get #files() {
    this.#read ??= readFiles(this.basePath);
    return this.#read;
  }

  readonly page = (c: Ctx): Response => c.html(this.#files.document);

  /** For a browser at an unknown address: the same document, which says that there is no such page. */
  readonly noPage: Middleware = async (c, next) =>
    wantsPage(c) ? c.html(this.#files.document, 404) : next();

  readonly asset: Middleware = async (c, next) => {
    const asset = this.#files.assets.get(c.req.param("file") ?? "");
    // The answer of every unknown address, so that a visitor who is not signed in learns nothing.
    if (!asset) return next();
    const supports = ["gzip", "identity"];
    const accepted = accepts(c, { header: "Accept-Encoding", supports, default: "identity" });
    // `c.env` is undefined if `fetch` is called without it.
    const encoding = c.env?.compresses ? accepted : "identity";
    const headers = { "Content-Type": asset.type, "Cache-Control": KEPT_FOR_EVER, Vary: "Accept-Encoding" };
    if (encoding === "identity") return c.body(asset.raw, 200, headers);
    return c.body(asset.zipped, 200, { ...headers, "Content-Encoding": encoding });
  };
}

function readFiles(basePath: string) {
  if (!existsSync(new URL("index.html", FOLDER))) {
    throw new RequestError(501, "the pages of the console are not built.", {
      field: "path",
      remedy: `Run \`npm run build\`; it writes ${fileURLToPath(FOLDER)}.`,
    });
  }
  const document = readFileSync(new URL("index.html", FOLDER), "utf8").replace(
    '<base href="/" />',
    `<base href="${basePath}/" />`,
  );
  const names = readdirSync(new URL("assets/", FOLDER));
  const assets = names.map((name): [string, Asset] => {
    const raw = readFileSync(new URL(`assets/${name}`, FOLDER));
    const type = TYPES[extname(name)] ?? "application/octet-stream";
    return [name, { type, raw, zipped: gzipSync(raw, { level: 9 }) }];
  });
  return { document, assets: new Map(assets) };
}
