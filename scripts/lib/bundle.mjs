// Bundles a program with all its imports: Node.js takes longer to find and read 500 modules than to run them.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Leaves out what no program runs and would only parse: BullMQ's PostgreSQL backend, classes of it that are not imported, zod's other languages. */
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
    onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
    }));
  },
};

/**
 * Bundles `dist/main.js` of a package into `bundle`, with the licences of what it contains. Modules that are imported when they are needed
 * have files of their own.
 *
 * @param {string} here - URL of the package's `bundle.mjs`
 * @param {{ external?: string[], plugins?: import("esbuild").Plugin[] }} [more]
 */
export async function bundle(here, { external = [], plugins = [] } = {}) {
  const folder = fileURLToPath(new URL(".", here));
  // Chunks are named after their content, so chunks of earlier builds would stay.
  rmSync(`${folder}bundle`, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: ["dist/main.js"],
    outdir: "bundle",
    bundle: true,
    splitting: true,
    minifyWhitespace: true,
    platform: "node",
    target: "node20.19",
    format: "esm",
    metafile: true,
    plugins: [...plugins, lean],
    external: ["pg", "@valkey/valkey-glide", ...external],
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
  const notices = [...folders].sort().map((third) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}${third}/package.json`, "utf8"));
    const file = readdirSync(folder + third).find((one) => /^licen[cs]e/i.test(one));
    const text = file ? readFileSync(`${folder}${third}/${file}`, "utf8").trim() : license;
    return `${name} ${version}\n\n${text}\n`;
  });
  writeFileSync(`${folder}bundle/LICENSES.txt`, notices.join(`\n${"-".repeat(80)}\n\n`));
}
