import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../../scripts/lib/project.mjs";

/* The site: it builds, which fails on a dead link, and its pages fit a browser. */

const PAGES = ["/", "/policies/overlap.html", "/architecture/run.html", "/reference/sdk.html"];
const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const site = join(root, ".carillon", "site");
const binary = process.env["CARILLON_CHROMIUM"];

const server = createServer(async ({ url = "/" }, response) => {
  const path = url.endsWith("/") ? `${url}index.html` : (url.split("?")[0] ?? "");
  const body = await readFile(join(site, path)).catch(() => undefined);
  const type = TYPES[extname(path)] ?? "application/octet-stream";
  response.writeHead(body ? 200 : 404, { "content-type": type }).end(body);
});
beforeAll(async () => {
  await promisify(execFile)("npm", ["run", "docs:build"], { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}, 1_200_000);
afterAll(() => server.close());

it.skipIf(!binary).each([
  ["light", 1280],
  ["light", 375],
  ["dark", 1280],
  ["dark", 375],
] as const)("its pages are whole in %s, %d pixels wide", async (colorScheme, width) => {
  const browser = await chromium.launch({ executablePath: binary as string, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } });
    const faults: string[] = [];
    page.on("pageerror", ({ message }) => faults.push(message));
    page.on("response", (one) => one.status() >= 400 && faults.push(`${one.status()} ${one.url()}`));
    for (const path of PAGES) {
      await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
      // A diagram is drawn after its page.
      if (path.includes("architecture")) await page.waitForSelector(".mermaid svg .label");
      // Sideways scrolling, the look, and labels of diagrams that are higher than their place.
      const found = await page.evaluate(`({
        wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        dark: document.documentElement.classList.contains("dark"),
        cut: [...document.querySelectorAll(".mermaid foreignObject")].filter(
          (label) => (label.firstElementChild?.scrollHeight ?? 0) > label.clientHeight + 1,
        ).length,
      })`);
      expect(found, path).toEqual({ wider: 0, dark: colorScheme === "dark", cut: 0 });
    }
    expect(faults).toEqual([]);
  } finally {
    await browser.close();
  }
});
