import { CarillonError } from "@carillon/core";
import { invalid, nearestRemedy } from "@carillon/core/internal";
import type { z } from "zod";

/**
 * Parses an input by its schema.
 *
 * @param within field that holds the input
 * @throws `INVALID_OPTION`, naming the field
 */
export function parseInput<Schema extends z.ZodObject>(
  schema: Schema,
  input: unknown,
  within?: string,
): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  if (typeof input !== "object" || input === null)
    throw invalid(within ?? "options", "not an object.", "Give an object with fields.");
  if (issue.code === "unrecognized_keys") {
    const unknown = String(issue.keys[0]).slice(0, 100);
    throw invalid(
      within === undefined ? unknown : `${within}.${unknown}`,
      "there is no such option.",
      nearestRemedy(unknown, Object.keys(schema.shape)),
    );
  }
  const field = [within, fieldOf(issue)].filter(Boolean).join(".");
  const [, wanted] = /^not (an? .*|one of .*)$/.exec(issue.message) ?? [];
  throw new CarillonError("INVALID_OPTION", `${issue.message}.`, {
    ...(field !== "" && { field }),
    ...(wanted !== undefined && { remedy: `Give ${wanted}.` }),
  });
}

/** `entries[3]` */
function fieldOf({ path }: z.core.$ZodIssue): string {
  const field = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return field.replace(/^\./, "");
}
