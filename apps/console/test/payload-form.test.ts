import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type FormField, formOf, shownIn, typedIn, valueAt, withValue } from "../ui/src/lib/payload-form.js";

const schema = z.toJSONSchema(
  z.object({
    name: z.string().describe("Of the report."),
    copies: z.int().default(1),
    loud: z.boolean().optional(),
    paper: z.enum(["a4", "a3"]),
    days: z.union([z.literal(1), z.literal(7)]).optional(),
    to: z.array(z.string()),
    from: z.object({ mail: z.email(), deep: z.object({ x: z.string() }).optional() }).optional(),
    any: z.record(z.string(), z.number()).optional(),
    when: z.string().nullable(),
  }),
  { io: "input" },
);
const shape = (fields: readonly FormField[] = []): unknown[] =>
  fields.map(({ path, kind, required, fields }) => [path.join("."), kind, required, ...shape(fields)]);

it("a form has the simple fields of a schema, and one level of groups", () => {
  const fields = formOf(schema, {});
  expect(shape(fields)).toEqual([
    ["name", "text", true],
    ["copies", "number", false],
    ["loud", "choice", false],
    ["paper", "choice", true],
    ["days", "choice", false],
    ["to", "texts", true],
    ["from", "group", false, ["from.mail", "text", true]],
  ]);
  expect(fields?.slice(0, 2).map(({ hint }) => hint)).toEqual(["Of the report.", "Default: 1."]);
});

it("a field whose value its control cannot show is left to the JSON", () => {
  const payload = { name: 7, copies: "x", loud: null, paper: "a5", days: 2, to: [1], from: "x" };
  expect(formOf(schema, payload)).toEqual([]);
  expect(shape(formOf(schema, { name: "two\nlines", to: ["two\nlines"] })).flat()).not.toContain("name");
  for (const other of [null, 1, []]) expect(formOf(schema, other)).toBeUndefined();
  expect(formOf({ anyOf: [] }, {})).toBeUndefined();
});

describe("a payload and its form stay equal", () => {
  const values = [
    undefined,
    "",
    "a",
    " ",
    "0",
    0,
    -1.5,
    1e21,
    true,
    false,
    "a4",
    7,
    [],
    ["a"],
    ["a", "", "b"],
  ];
  const all = (fields: readonly FormField[]): FormField[] =>
    fields.flatMap((one) => [one, ...all(one.fields)]);

  it("what a field shows, typed again, is the same payload", () => {
    const seen = new Set<string>();
    for (const { path } of all(formOf(schema, {}) ?? [])) {
      for (const value of values) {
        const payload = withValue({ more: { kept: 1 }, from: { other: 2 } }, path, value);
        const field = all(formOf(schema, payload) ?? []).find((one) => one.path.join() === path.join());
        if (!field || field.kind === "group") continue;
        // An optional text that is empty, and a required list without entries, have no control of their own.
        if (value === "" && !field.required) continue;
        const typed = typedIn(field, shownIn(field, valueAt(payload, path)));
        if (value === undefined && field.required && field.kind !== "choice") continue;
        if (Array.isArray(value) && value.length === 0 && !field.required) continue;
        expect(withValue(payload, path, typed)).toEqual(payload);
        seen.add(field.kind);
      }
    }
    expect([...seen].sort()).toEqual(["choice", "number", "text", "texts"]);
  });

  it("an edit changes one value, in place, and nothing that the form does not show", () => {
    const payload = { z: 1, from: { mail: "a", x: [1] }, name: "n" };
    const edited = withValue(payload, ["from", "mail"], "b");
    expect(JSON.stringify(edited)).toBe('{"z":1,"from":{"mail":"b","x":[1]},"name":"n"}');
    expect(withValue(edited, ["name"], undefined)).toEqual({ z: 1, from: { mail: "b", x: [1] } });
    expect(withValue({}, ["from", "mail"], "b")).toEqual({ from: { mail: "b" } });
    expect(JSON.stringify(withValue({}, ["__proto__"], 1))).toBe('{"__proto__":1}');
  });
});
