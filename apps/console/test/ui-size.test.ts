import { existsSync, readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

/* Measures the output of `npm run build`. */

const FOLDER = new URL("../dist/ui/", import.meta.url);
const ZIPPED = { first: 130_000, all: 250_000, font: 60_000 };

const STYLES = new URL("../ui/src/styles/", import.meta.url);

const read = (file: string) => readFileSync(new URL(file, FOLDER));
const sizeOf = (files: readonly string[]) =>
  files.reduce((sum, file) => sum + gzipSync(read(file)).length, 0);

test("the pages stay small", () => {
  if (!existsSync(FOLDER)) throw new Error("The pages are not built: run npm run build.");
  const document = read("index.html").toString();
  const first = [...document.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(
    ([, file]) => file as string,
  );
  expect(first.filter((file) => file.endsWith(".js"))).not.toEqual([]);
  expect(first.filter((file) => file.endsWith(".css"))).not.toEqual([]);
  const files = readdirSync(new URL("assets/", FOLDER)).map((name) => `assets/${name}`);
  const [fonts, all] = [true, false].map((is) => files.filter((file) => file.endsWith(".woff2") === is));
  expect(sizeOf(["index.html", ...first])).toBeLessThan(ZIPPED.first);
  expect(sizeOf(["index.html", ...(all as string[])])).toBeLessThan(ZIPPED.all);
  expect(fonts).toHaveLength(1);
  expect(sizeOf(fonts as string[])).toBeLessThan(ZIPPED.font);
});

test("colours, sizes of texts, and lengths in px are tokens", () => {
  const literal = /#[\da-f]{3,8}\b|\brgb\(|\bfont-(?:size|weight): [\d.]|\b(?!0px|1px)[\d.]+px\b/i;
  const files = readdirSync(STYLES).filter((name) => name !== "tokens.css");
  const lines = files.flatMap((name) => readFileSync(new URL(name, STYLES), "utf8").split("\n"));
  expect(lines.length).toBeGreaterThan(500);
  expect(lines.filter((line) => literal.test(line))).toEqual([]);
});

test("nothing is loaded from elsewhere, and no style or script is inline", () => {
  const document = read("index.html").toString();
  expect(document).not.toMatch(/<style|<script(?![^>]* src=)|style=|\son\w+=|https?:/);
});
