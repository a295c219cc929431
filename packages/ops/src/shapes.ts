import { OUTCOMES, TASK_STATES, type TaskRef, taskSchema } from "@carillon/core";
import { count, time } from "@carillon/core/internal";
import { z } from "zod";

export { count, time };

/** Shapes that several operations share. An `id` names a schema in the API's description. */

/** A text of an input; the operation checks the rest. */
export const given = z.string({ error: ({ input }) => (input === undefined ? "missing" : "not a text") });
export const wholeNumber = z.number("not a number").meta({ type: "integer" });
export const flag = z.boolean("not true or false");
export const dryRun = flag.optional().describe("Change nothing, show what would change.");
export function oneOf<const Word extends string>(words: readonly Word[]) {
  return z.enum(words as readonly [Word, ...Word[]], `not one of ${words.join(", ")}`);
}
/** One word, or a list of several. */
export function someOf<const Word extends string>(words: readonly Word[]) {
  const fault = `not one of ${words.join(", ")}, or several`;
  const word = z.enum(words as readonly [Word, ...Word[]]);
  return z.union([word, z.array(word).min(1, fault).readonly()], fault);
}
/** A duration of an input: `"30s"`, or whole milliseconds. */
export const duration = z.union([z.string(), z.number()], "not a duration");
/** A point in time of an input. */
export const instant = z.union([z.string(), z.number(), z.date()], "not a time").meta({
  description: "UTC milliseconds, or ISO 8601 with Z or an offset.",
});

export const note = given.optional().describe("Why; at most 500 characters.");
export const runId = given.describe("A run's id, as each list of runs shows it.");

/** The page of a list. */
export const page = {
  limit: wholeNumber.optional().describe("Most entries of a page, 1 to 1,000. Default: 100."),
  cursor: given.optional().describe("The cursor of the previous page."),
};
export const nextPage = z.string().optional().describe("Gives the next page; missing: this was the last.");

const policies = taskSchema.shape.overlap.unwrap();
export const overlap = oneOf(policies.options);
export const outcome = z.enum(OUTCOMES).meta({ id: "Outcome" });
export const taskState = z.enum(TASK_STATES).meta({ id: "TaskState" });
export const runState = z.enum(["queued", "running", "terminating", "final"]).meta({ id: "RunState" });

export const pause = z
  .object({ at: time, by: z.string().optional(), note: z.string().optional() })
  .meta({ id: "Pause" });
export const taskName = z
  .object({ queue: z.string(), owner: z.string(), id: z.string() })
  .meta({ id: "TaskName" });
/** Names a task, as `get` takes it. */
export const taskRef = {
  queue: given.optional().describe("The task's queue; needed if the id exists in several."),
  owner: given.optional().describe("Default: the client's, or `system`."),
  id: given,
};
/** A name in a list: `owner/id`, or an object. */
export const taskRefs = z.union(
  [given, z.strictObject({ queue: given.optional(), owner: given.optional(), id: given })],
  "neither a name nor an object with an id",
);
export function refOf({ queue, owner, id }: z.output<z.ZodObject<typeof taskRef>>): TaskRef {
  return { queue, owner, id };
}
export const warning = z
  .object({ code: z.string(), message: z.string(), remedy: z.string() })
  .meta({ id: "Warning" });
export const changed = z.object({ changed: z.boolean().describe("False: it was so already.") });

/**
 * Gives the shape of an answer the type of the application's client, which answers the same. Tests check answers against the
 * shape.
 */
export function as<Answer>(shape: z.ZodType): z.ZodType<Answer, Answer> {
  return shape as z.ZodType<Answer, Answer>;
}

/** An input that is only described: it passes unchanged, and the application's client checks it, with errors of its own. */
export function describedBy<Input>(shape: z.ZodType, meta: z.GlobalMeta = {}): z.ZodType<Input, Input> {
  const open = shape.meta(meta);
  open._zod.run = open._zod.parse = (payload) => payload;
  return open as z.ZodType<Input, Input>;
}

/** Fields that nodes and workers share. */
export const process = {
  id: z.string(),
  host: z.string(),
  pid: count,
  started: time,
  beat: time.describe("The last heartbeat."),
  every: count.describe("Interval of its heartbeats, in ms."),
  alive: z.boolean().describe("It has missed no more than three heartbeats."),
};
