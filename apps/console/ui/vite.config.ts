import { HTTP_OPERATIONS } from "@carillon/ops/internal";
import { defineConfig } from "vite";

const routes = HTTP_OPERATIONS.map(({ name, operation: { http, body } }) => [name, { http, body }]);

/** Builds the pages into the console's `dist`, which is what users install. */
export default defineConfig({
  root: import.meta.dirname,
  // Addresses are relative to the page's <base>, which the server writes.
  base: "./",
  // The pages call operations by name, without their code.
  define: { OPERATION_ROUTES: JSON.stringify(Object.fromEntries(routes)) },
  oxc: { jsx: { runtime: "automatic" } },
  build: {
    outDir: "../dist/ui",
    emptyOutDir: true,
    // Data URLs in styles and scripts would pass the CSP, but files can be cached.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: {
      onLog(level, log, handle) {
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") handle(level, log); // "use client" means nothing here
      },
    },
    license: { fileName: "licenses.md" },
  },
});
