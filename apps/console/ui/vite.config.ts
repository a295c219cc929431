import { readFileSync } from "node:fs";
import { HTTP_OPERATIONS, type InputField, inputFields } from "@carillon/ops/internal";
import { defineConfig, type Plugin } from "vite";
import type { FormField } from "./src/lib/forms.js";

/** Kinds of controls, by kinds of fields. */
const KINDS = {
  ...{ any: "string", array: "array", boolean: "boolean", duration: "string", integer: "integer" },
  ...{ number: "number", object: "object", string: "string", time: "time", words: "array" },
} as const satisfies Record<InputField["kind"], FormField["kind"]>;

const routes = HTTP_OPERATIONS.map(({ name, operation: { http, body } }) => [name, { http, body }]);
const forms = HTTP_OPERATIONS.filter(({ method }) => method !== "GET").map(
  ({ name, operation: { role, reach, input } }) => [name, { role, reach, fields: fieldsOf(input) }],
);

/** The fields of an input, as a dialog asks for them. */
function fieldsOf(input: Parameters<typeof inputFields>[0]): Record<string, FormField> {
  const fields = Object.entries(inputFields(input)).map(([name, { kind, choices, about, ...field }]) => {
    const [, of] = /^(queue|owner|tag|type)s?$/.exec(name) ?? [];
    const control = kind === "string" && choices ? { kind: "choice", choices } : { kind: KINDS[kind] };
    return [name, { ...control, ...(of && { of }), ...(about && { about }), ...field }];
  });
  return Object.fromEntries(fields);
}

/** Ships the licence of the font, which is no module that `build.license` sees. */
const fontLicense: Plugin = {
  name: "font-license",
  generateBundle() {
    const source = readFileSync(new URL(import.meta.resolve("@fontsource-variable/inter/LICENSE")));
    this.emitFile({ type: "asset", fileName: "inter-license.txt", source });
  },
};

/** Builds the pages into the console's `dist`, which is what users install. */
export default defineConfig({
  root: import.meta.dirname,
  // Addresses are relative to the page's <base>, which the server writes.
  base: "./",
  // The pages call operations by name, without their code.
  define: {
    OPERATION_ROUTES: JSON.stringify(Object.fromEntries(routes)),
    OPERATION_FORMS: JSON.stringify(Object.fromEntries(forms)),
  },
  plugins: [fontLicense],
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
