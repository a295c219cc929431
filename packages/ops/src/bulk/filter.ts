import { CarillonError } from "@carillon/core";
import { invalid } from "@carillon/core/internal";
import { CONDITION_NAMES, CONDITIONS } from "@carillon/sdk/conditions";
import { assertRef, checkedConditions, type Scope } from "@carillon/sdk/internal";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { flag, taskRefs } from "../shapes.js";

/** Fields that select tasks as `client.list` does, or by name. At least one besides `state` is required. */
export const filter = {
  ...conditions,
  tasks: z
    .array(taskRefs, "not a list")
    .readonly()
    .optional()
    .describe("These tasks, at most 1,000: as `get` takes them. Not together with another field."),
};

/** For calls about many tasks. */
export const dryRun = flag.optional().describe("Change nothing, show how many are meant, and which.");

/** The fields of a filter that is checked. */
export type Filter = z.output<z.ZodObject<typeof filter>>;

/** Tasks that one call may name. */
export const MOST_NAMED = 1_000;

/**
 * A filter with the bound owner.
 * @param more further fields, each of which is a condition too
 * @param may `any`: all tasks of the namespace too, for calls that change nothing
 * @throws `INVALID_OPTION` for a filter without any condition, which would select a whole namespace by accident
 */
export function checkedFilter<Given extends Filter>(
  scope: Scope,
  filter: Given,
  more: (keyof Given & string)[] = [],
  may?: "any",
): Given {
  const { tasks } = filter;
  checkedConditions(filter);
  if (tasks !== undefined) {
    const other = CONDITION_NAMES.find((field) => filter[field] !== undefined);
    if (other !== undefined)
      throw invalid(other, "cannot be combined with tasks.", "Give names, or conditions; not both.");
    if (tasks.length > MOST_NAMED)
      throw invalid("tasks", `more than ${MOST_NAMED}.`, "Name fewer, or give conditions.");
    for (const ref of tasks) assertRef(ref);
    return filter;
  }
  const bound = scope.bind(filter);
  const narrowing = [...CONDITION_NAMES.filter((field) => !("needsOther" in CONDITIONS[field])), ...more];
  if (may === "any" || narrowing.some((field: keyof Given) => Boolean(bound[field]))) return bound;
  throw new CarillonError("INVALID_OPTION", "no condition selects tasks.", {
    remedy: `Select tasks by an owner, a tag, a queue, a text or an outcome, or by name${more.length > 0 ? `; or by ${more.join(" or ")}` : ""}.`,
  });
}
