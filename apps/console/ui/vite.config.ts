import { HTTP_OPERATIONS } from "@carillon/ops/internal";
import { defineConfig } from "vite";
import { z } from "zod";
import type { FormField } from "./src/lib/forms.js";

const routes = HTTP_OPERATIONS.map(({ name, operation: { http, body } }) => [name, { http, body }]);
const forms = HTTP_OPERATIONS.filter(({ method }) => method !== "GET").map(
  ({ name, operation: { role, reach, input } }) => [name, { role, reach, fields: fieldsOf(input) }],
);

/** The fields of an input, as a dialog asks for them. */
function fieldsOf(input: z.ZodObject): Record<string, FormField> {
  const { properties = {}, required = [] } = z.toJSONSchema(input, {
    ...{ io: "input", unrepresentable: "any" },
    override({ zodSchema, jsonSchema }) {
      if (zodSchema._zod.def.type === "date") jsonSchema.type = "time" as "string";
    },
  }) as { properties?: Record<string, z.core.JSONSchema.JSONSchema>; required?: string[] };
  const fields = Object.entries(properties).map(
    ([name, { anyOf, description: about, enum: choices, ...schema }]) => {
      const types = (anyOf ?? [schema]).flatMap(({ type }) => type as string);
      const known = ["time", "array", "object", "string", "integer", "number", "boolean"].find((one) =>
        types.includes(one),
      );
      const kind = choices ? "choice" : known;
      const [, of] = /^(queue|owner|tag|type)s?$/.exec(name) ?? [];
      return [
        name,
        { kind, of, about, choices, nullable: types.includes("null"), required: required.includes(name) },
      ];
    },
  );
  return Object.fromEntries(fields);
}

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
