// Bundles the command line and its imports into one file, and modules that are only needed for a connection into a
// second one: Node.js takes longer to find and read 500 modules than to run them.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/**
 * Leaves out what the command line never runs and would only parse: BullMQ's workers and PostgreSQL backend, the locks of nodes, and zod's
 * error texts in other languages.
 */
const lean = {
  name: "lean",
  /** @param {import("esbuild").PluginBuild} build */
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /^bullmq$/ }, ({ resolveDir }) =>
      resolve("bullmq/dist/esm/index.js", { kind: "import-statement", resolveDir }),
    );
    onResolve({ filter: /./ }, async ({ path, kind, importer, resolveDir, pluginData }) => {
      if (pluginData === lean || !importer.includes("/bullmq/dist/esm/")) return undefined;
      const found = await resolve(path, { kind, importer, resolveDir, pluginData: lean });
      return found.path.includes("/bullmq/dist/esm/") ? { ...found, sideEffects: false } : found;
    });
    onResolve({ filter: /^redlock$/ }, () => ({ path: "redlock", namespace: "none" }));
    onLoad({ filter: /./, namespace: "none" }, () => ({ contents: "export default class {}" }));
    onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
    }));
  },
};

/** Puts the values of this module in its place, which are read from the schemas of all operations: without zod, help is there at once. */
const inputs = {
  name: "inputs",
  /** @param {import("esbuild").PluginBuild} build */
  setup({ onLoad }) {
    onLoad({ filter: /\/dist\/inputs\.js$/ }, async ({ path }) => {
      const { SHAPES } = await import(path);
      return { contents: `export const SHAPES = ${JSON.stringify(SHAPES)};` };
    });
  },
};

const here = fileURLToPath(new URL(".", import.meta.url));
// Chunks are named after their content, so chunks of earlier builds would stay.
rmSync(`${here}bundle`, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ["dist/main.js"],
  outdir: "bundle",
  bundle: true,
  splitting: true,
  minifyWhitespace: true,
  platform: "node",
  target: "node20.19",
  format: "esm",
  metafile: true,
  plugins: [lean, inputs],
  external: ["pg", "@valkey/valkey-glide"],
  logLevel: "warning",
  // BullMQ and others are CommonJS, and require modules of Node.js.
  banner: {
    js: 'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);',
  },
});

/** Folders of third-party packages that the bundle contains. */
const folders = new Set(
  Object.keys(metafile.inputs).flatMap((path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []),
);
const notices = [...folders].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${here}${folder}/package.json`, "utf8"));
  const file = readdirSync(here + folder).find((one) => /^licen[cs]e/i.test(one));
  const text = file ? readFileSync(`${here}${folder}/${file}`, "utf8").trim() : license;
  return `${name} ${version}\n\n${text}\n`;
});
writeFileSync(`${here}bundle/LICENSES.txt`, notices.join(`\n${"-".repeat(80)}\n\n`));
