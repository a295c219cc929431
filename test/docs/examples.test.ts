import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Within the repository, because the examples import its packages. */
const folder = join(root, ".carillon", "examples");

const pages = [
  "README.md",
  ...readdirSync(join(root, "packages")).map((name) => `packages/${name}/README.md`),
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => `docs/${path}`),
];

/**
 * A block of TypeScript. A comment before it may complete it, as in `<!-- as: defineTask("a", { … }) -->`, whose `…` is the block,
 * or say why nobody can compile it: `<!-- not compiled: … -->`.
 */
const BLOCK = /(?:<!-- (?<how>as|not compiled): (?<what>.+) -->\n+)?^( *)```ts\n(?<code>[\s\S]*?)^\3```/gm;

/**
 * The blocks of a page, each at its own lines, so that an error names a line of the page. A block that begins with its file's name, `// client.ts`,
 * can be imported by others of the page.
 */
function examplesOf(page: string): { name: string; code: string }[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(BLOCK)].flatMap((match) => {
    const { how, what = "…", code = "" } = match.groups as Record<string, string | undefined>;
    if (how === "not compiled") return [];
    const line = text.slice(0, text.indexOf(code, match.index)).split("\n").length;
    const whole = how === "as" ? what.replace("…", () => code) : code;
    const file = /^\/\/ (\S+\.ts)\n/.exec(code)?.[1] ?? `${line}.ts`;
    const name = `${page.replaceAll("/", "__")}__/${file}`;
    return [{ name, code: `export {};${"\n".repeat(line - 1)}${whole}` }];
  });
}

/** Names that only fragments may use without an import, as they go on from a longer example: "Imports" of preamble.ts. */
const [, IMPORTS = ""] =
  /Imports of[^\n]*\n([\s\S]*?)\n\n/.exec(readFileSync(new URL("preamble.ts", import.meta.url), "utf8")) ??
  [];
const IMPORTED = new Set([...IMPORTS.matchAll(/(?:const|type) (\w+)/g)].map(([, name = ""]) => name));

it("examples that import something import all that they use", () => {
  expect(IMPORTED.size).toBeGreaterThan(5);
  const missing = pages.flatMap(examplesOf).flatMap(({ name, code }) => {
    const rest = code.replace(/^(export \{\};\n*)?import [\s\S]*?;$|\/\/.*|"[^"\n]*"/gm, "");
    if (!/^import /m.test(code)) return [];
    const imports = [...code.matchAll(/^import [\s\S]*?;$/gm)].join();
    const isMissing = (one: string) =>
      new RegExp(`(?<![.\\w])${one}\\b(?!:)`).test(rest) && !new RegExp(`\\b${one}\\b`).test(imports);
    return [...IMPORTED].filter(isMissing).map((one) => `${name}: ${one}`);
  });
  expect(missing).toEqual([]);
});

it("examples in TypeScript compile", async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const examples = pages.flatMap(examplesOf);
  expect(examples.length).toBeGreaterThan(50);
  expect(new Set(examples.map(({ name }) => name)).size).toBe(examples.length);
  for (const { name, code } of examples) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), code);
  }
  // As in a reader's project, on the built packages.
  const compilerOptions = {
    target: "es2023",
    lib: ["es2023"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    skipLibCheck: true,
    experimentalDecorators: true,
    noEmit: true,
  };
  const files = ["../../test/docs/preamble.ts", ...examples.map(({ name }) => name)];
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const errors = await new Promise<string>((resolve) => {
    execFile(process.execPath, [tsc, "-p", folder, "--pretty", "false"], (error, stdout) =>
      resolve(stdout || String(error ?? "")),
    );
  });
  const byPage = errors.replaceAll(/^.*\.carillon\/examples\//gm, "").replaceAll(/__\/\d+\.ts\(/g, "(");
  expect(byPage.replaceAll("__", "/")).toBe("");
});
