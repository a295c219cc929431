import { type Outcome, type TaskState, taskSchema } from "@carillon/sdk";
import { z } from "zod";

const STATES = { scheduled: true, paused: true, finished: true } satisfies Record<TaskState, true>;
const OUTCOMES = {
  succeeded: true,
  failed: true,
  "timed-out": true,
  quota: true,
  cancelled: true,
  dropped: true,
  crashed: true,
  "nothing-to-do": true,
  lost: true,
} satisfies Record<Outcome, true>;

const text = z.string("given more than once");
const number = text.regex(/^\d{1,15}$/, "not a whole number").transform(Number);
const oneOf = <Word extends string>(words: Record<Word, true>) =>
  text.refine(
    (word): word is Word => Object.hasOwn(words, word),
    `not one of ${Object.keys(words).join(", ")}`,
  );

/** The parameters of addresses. Bounds, names and cursors are the client's to check. */
export const LIST_QUERY = z.strictObject({
  queue: text.optional(),
  owner: text.optional(),
  tag: text.optional(),
  state: oneOf<TaskState>(STATES).optional(),
  limit: number.optional(),
  cursor: text.optional(),
});

export const RUNS_QUERY = z.strictObject({ limit: number.exactOptional(), offset: number.exactOptional() });

export const JOURNAL_QUERY = z.strictObject({
  task: text.optional(),
  owner: text.optional(),
  queue: taskSchema.shape.queue.optional(),
  outcome: oneOf<Outcome>(OUTCOMES).optional(),
  node: text.optional(),
  from: number.optional(),
  to: number.optional(),
  limit: number.optional(),
  cursor: text.optional(),
});
