import { conditionShape } from "@carillon/ops/internal";
import type { Outcome } from "@carillon/sdk";
import { ITEM_STATES, OUTCOMES, TASK_STATES } from "@carillon/sdk/internal";
import { taskSchema } from "@carillon/sdk/schedule";
import { z } from "zod";

const text = z.string({ error: ({ input }) => (input === undefined ? "missing" : "given more than once") });
// `meta` is for the OpenAPI document; `undefined` there removes the schema of the text.
const number = text
  .regex(/^\d{1,15}$/, "not a whole number")
  .transform(Number)
  .meta({ type: "integer", pattern: undefined });
const oneOf = <Word extends string>(words: readonly Word[]) =>
  text
    .refine(
      (word): word is Word => (words as readonly string[]).includes(word),
      `not one of ${words.join(", ")}`,
    )
    .meta({ enum: [...words] });

/** One outcome or several: `a,b`, or the parameter repeated. */
const outcomes = z
  .preprocess(
    (value) => (Array.isArray(value) ? value.join() : value),
    text.transform((words, context) => {
      const outcomes = words.split(",");
      if (outcomes.every(isOutcome)) return outcomes;
      context.addIssue(`not one of ${OUTCOMES.join(", ")}, nor several with commas`);
      return z.NEVER;
    }),
  )
  .meta({ type: "array", items: { type: "string", enum: [...OUTCOMES] } });

function isOutcome(word: string): word is Outcome {
  return (OUTCOMES as readonly string[]).includes(word);
}

const flag = oneOf(["true", "false"])
  .transform((value) => value === "true")
  .meta({ type: "boolean", enum: undefined });

const CONDITION = conditionShape({
  name: text,
  text,
  flag,
  state: oneOf(TASK_STATES),
  outcomes,
});
const { queue, owner, tag, deliveries } = CONDITION;

/** The query parameters. The client checks bounds, names and cursors. */
export const COUNTS_QUERY = z.strictObject({ queue, owner, tag, deliveries });

export const LIST_QUERY = z.strictObject({
  ...CONDITION,
  sort: oneOf(["name", "next", "last"]).optional(),
  limit: number.optional(),
  cursor: text.optional(),
});

/** The owner, for a token that is bound to several. */
export const EVENTS_QUERY = z.strictObject({ owner: text.exactOptional() });

export const PUT_QUERY = z.strictObject({ ifRevision: text.optional() });

export const RUNS_QUERY = z.strictObject({ limit: number.exactOptional(), offset: number.exactOptional() });

/** `status` may be several, between commas. */
export const ITEMS_QUERY = z.strictObject({
  status: text
    .transform((words) => words.split(","))
    .pipe(z.array(oneOf(ITEM_STATES)))
    .meta({ description: `Several between commas: ${ITEM_STATES.join(", ")}.` })
    .exactOptional(),
  limit: number.exactOptional(),
  cursor: text.exactOptional(),
});

export const RUNNING_QUERY = z.strictObject({
  state: oneOf(["running"] as const),
  queue: text.exactOptional(),
  limit: number.exactOptional(),
});

export const SUMMARY_QUERY = z.strictObject({ within: number.exactOptional() });

export const JOURNAL_QUERY = z.strictObject({
  task: text.optional(),
  owner: text.optional(),
  queue: taskSchema.shape.queue.optional(),
  outcome: outcomes.optional(),
  node: text.optional(),
  from: number.optional(),
  to: number.optional(),
  limit: number.optional(),
  cursor: text.optional(),
});
