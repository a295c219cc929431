import type { TaskInput } from "@carillon/core";
import { taskSchema } from "@carillon/core";
import { z } from "zod";
import {
  count,
  describedBy,
  duration,
  flag,
  given,
  oneOf,
  taskName,
  time,
  warning,
  wholeNumber,
} from "../shapes.js";
import { preview } from "../tasks/task.js";

/** A set as its last apply left it. */
export const set = z
  .object({
    name: z.string(),
    generation: count.describe("Counts the applies that changed something, or took over from another one."),
    members: count.describe("Number of its tasks."),
    version: z.string().optional(),
    commit: z.string().optional(),
    by: z.string().optional(),
    at: time,
    protect: z.array(z.string()).readonly(),
    queues: z
      .array(z.string())
      .readonly()
      .optional()
      .describe("Queues in which its last apply could write: the next one shuts it out there."),
    applying: z.string().optional().describe("An apply of this plan has begun and not ended."),
    applied: z.string().optional().describe("The last plan that changed something."),
  })
  .meta({ id: "TaskSet" });

export interface SetTask extends TaskInput {
  /** Enforced by each apply. Default: people pause and resume it. */
  state?: "paused" | "running" | undefined;
  /** Its former id: it keeps its pause, its next time and its statistics. */
  renamedFrom?: string | undefined;
}

const task = describedBy<SetTask>(
  taskSchema.extend({
    state: oneOf(["paused", "running"]).optional(),
    renamedFrom: given.optional(),
  }),
  { id: "SetTask" },
);

/** All that a set defines, and what an apply of it may do. */
export const setInput = z.strictObject({
  set: given.describe("Name of the set."),
  tasks: z.array(task, "not a list").readonly(),
  calendars: z
    .record(z.string(), z.array(z.string(), "not a list of texts"))
    .optional()
    .describe("Shared calendars by name. None is ever deleted."),
  protect: z
    .array(given, "not a list")
    .readonly()
    .optional()
    .describe("Tasks that no apply removes: `[owner/]id`."),
  version: given.optional().describe("An older one than the set's is refused: `42`, `1.10.0`, `2026-03-01`."),
  commit: given.optional(),
  adopt: z
    .array(given, "not a list")
    .readonly()
    .optional()
    .describe("Take over this task of no set or another one, `[owner/]id`; `*`: all."),
  allowRemovals: wholeNumber
    .optional()
    .describe("Most tasks that it may remove. Default: a tenth of the set's tasks, at least 5."),
  keep: flag.optional().describe("Remove nothing."),
  prune: duration.optional().describe("Delete tasks that were removed longer ago than this: `7d`."),
  redact: z
    .array(given, "not a list")
    .readonly()
    .or(z.literal(false))
    .optional()
    .describe(
      "Payload fields that a plan hides, by name or dotted path, besides secrets by their names; `false`: none.",
    ),
});
export type SetInput = z.output<typeof setInput>;

/** Made by an undo: only these tasks are removed, and an older version is applied. */
export interface Undoes {
  readonly change: string;
  /** Keys of tasks. */
  readonly removes: readonly string[];
  /** Keys of tasks whose payload stays: the schema of its type may have changed since. */
  readonly keeps: ReadonlySet<string>;
}

/** The input of an apply, or the one that an undo makes of a change. */
export type GivenSet = SetInput & { readonly undoes?: Undoes | undefined };

const fires = z.object({
  humanized: z.string(),
  perDay: count.describe("Times in the next 24 hours."),
  notes: z.array(z.string()).readonly().describe("About changes of the clocks among the next five times."),
});
const side = z.object({ perDay: count, busiest: z.object({ at: time, count }).optional() });

const item = z.object({
  action: z.enum(["create", "update", "rename", "remove", "conflict", "prune"]),
  task: taskName,
  from: taskName.optional().describe("Its name until now, if the set gives it another one."),
  revision: z.string().describe("Of the stored task; `absent`: there is none."),
  state: oneOf(["paused", "running"]).optional().describe("It is paused, or resumed without what fell due."),
  drift: z
    .object({ by: z.string().optional(), at: time })
    .optional()
    .describe("Someone changed its definition after the set put it."),
  set: z.string().optional().describe("Set that it belongs to now, if it is another one."),
  returns: flag.optional().describe("It was removed before, and comes back with its history."),
  preview: preview.optional(),
  schedule: z
    .object({ before: fires.optional(), after: fires })
    .optional()
    .describe("If its times change. Of the first 500 changes."),
});
export type PlanItem = z.output<typeof item>;

const comparison = z.object({
  format: z.literal(1),
  id: z.string().describe("Names what the plan does: `apply` of another one is refused."),
  set: z.string(),
  base: count.describe("Generation of the set."),
  version: z.string().optional(),
  commit: z.string().optional(),
  at: time,
  counts: z.object({
    create: count,
    update: count,
    rename: count,
    remove: count,
    conflict: count,
    prune: count,
    unchanged: count,
    drift: count,
  }),
  calendars: z.array(z.object({ name: z.string(), outcome: z.enum(["created", "updated"]) })).readonly(),
  items: z.array(item).readonly().describe("All but unchanged tasks."),
  refused: z.array(warning).readonly().describe("Rules that it breaks: it cannot be applied."),
});

/** A plan that was applied: without what only people want to see before it. */
export const applied = comparison.meta({ id: "AppliedPlan" });
export type Applied = z.output<typeof applied>;

export const plan = comparison
  .extend({
    load: z
      .object({ before: side, after: side })
      .optional()
      .describe(
        "Occurrences of the namespace in the next 24 hours, and the busiest minute; missing: too many to count.",
      ),
    warnings: z.array(warning.extend({ tasks: z.array(z.string()).readonly(), count })).readonly(),
  })
  .meta({ id: "Plan" });
export type Plan = z.output<typeof plan>;
