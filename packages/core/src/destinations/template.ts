import { z } from "zod";
import type { Json } from "../json.js";
import { type Batch, destination, webhookUrl } from "./destination.js";
import { secret } from "./secret.js";
import { bounded, iso, subjectOf, titleOf } from "./text.js";

/** Limits of a template as JSON, and of a value in it, in characters. */
const [LONGEST_TEMPLATE, LONGEST_VALUE] = [4_096, 1_000];

/** The values of a template, by name. Of several alerts, `title` counts them, and the rest is of the first. */
const VALUES: Readonly<Record<string, (batch: Batch) => string | undefined>> = {
  title: titleOf,
  namespace: ({ namespace }) => namespace,
  kind: ({ alerts: [alert] }) => alert?.kind,
  task: ({ alerts: [alert] }) => alert && subjectOf(alert),
  queue: ({ alerts: [alert] }) => alert?.task?.queue ?? alert?.queue,
  run: ({ alerts: [alert] }) => alert?.run,
  at: ({ alerts: [alert], at = alert?.at }) => (at === undefined ? undefined : iso(at)),
  message: ({ alerts: [alert] }) => alert?.message ?? alert?.error,
  link: ({ alerts: [alert] }) => alert?.link,
};
const PLACEHOLDER = /\{\{(\w*)\}\}/g;

const schema = z
  .looseObject({})
  .refine((given) => JSON.stringify(given).length <= LONGEST_TEMPLATE, `is longer than ${LONGEST_TEMPLATE}.`)
  .refine(
    (given) =>
      [...JSON.stringify(given).matchAll(PLACEHOLDER)].every(([, name = ""]) => Object.hasOwn(VALUES, name)),
    `has an unknown name in {{}}. Known are ${Object.keys(VALUES).join(", ")}.`,
  );

/** JSON of your own, for a service that has no format here: in its texts, `{{title}}` and others stand for values. */
export const template = destination({
  carrier: "http",
  fields: { url: secret(webhookUrl), template: schema.default({ text: "{{title}}\n{{message}}\n{{link}}" }) },
  endpoint: ({ url }) => url,
  bodies: (batch, { template }) => [filled(template as Json, batch)],
});

/** Fills the texts of JSON, not JSON as text: no value can change its form. */
function filled(json: Json, batch: Batch): Json {
  if (typeof json === "string")
    return json.replace(PLACEHOLDER, (_, name: string) =>
      bounded(VALUES[name]?.(batch) ?? "", LONGEST_VALUE),
    );
  if (Array.isArray(json)) return json.map((one) => filled(one, batch));
  if (typeof json !== "object" || json === null) return json;
  return Object.fromEntries(Object.entries(json).map(([name, one]) => [name, filled(one, batch)]));
}
