import { bundle } from "../../scripts/lib/bundle.mjs";

/** Leaves out the locks of nodes, and puts the values of `inputs` in its place, which are read from all operations: without zod, help is there at once. */
const light = {
  name: "light",
  /** @param {import("esbuild").PluginBuild} build */
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^redlock$/ }, () => ({ path: "redlock", namespace: "none" }));
    onLoad({ filter: /./, namespace: "none" }, () => ({ contents: "export default class {}" }));
    onLoad({ filter: /\/dist\/inputs\.js$/ }, async ({ path }) => {
      const { SHAPES } = await import(path);
      return { contents: `export const SHAPES = ${JSON.stringify(SHAPES)};` };
    });
  },
};

await bundle(import.meta.url, { plugins: [light] });
