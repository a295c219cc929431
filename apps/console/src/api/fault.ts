import { CarillonError } from "@carillon/sdk";
import type { z } from "zod";

/** A query or a body as its schema reads it. @throws `code`, naming the field */
export function readAs<Schema extends z.ZodObject>(
  schema: Schema,
  input: unknown,
  code: "INVALID_FILTER" | "INVALID_OPTION",
): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  if (issue.code === "unrecognized_keys") {
    const known = Object.keys(schema.shape);
    throw new CarillonError(code, "nothing of this name is known here.", {
      field: String(issue.keys[0]).slice(0, 100),
      remedy: known.length === 0 ? "Leave it out." : `Known are ${known.join(", ")}.`,
    });
  }
  const field = fieldOf(issue);
  throw new CarillonError(code, `${issue.message}.`, field === "" ? {} : { field });
}

/** `entries[3]` */
function fieldOf({ path }: z.core.$ZodIssue): string {
  const field = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return field.replace(/^\./, "");
}
