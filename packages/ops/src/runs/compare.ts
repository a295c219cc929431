import type { Run } from "@carillon/core";
import { SUCCESSES } from "@carillon/core/internal";
import { differenceOf, findRun, type Scope } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, runId } from "../shapes.js";
import { run } from "./run.js";

/** Runs read at once, and in all. */
const [PAGE, MOST] = [100, 1_000];

const fields = z.record(z.string(), z.unknown());

export const compareRun = operation({
  http: "GET /runs/:id/compare",
  role: "viewer",
  reach: "owner",
  summary:
    "Shows a run beside the last good one of its task before it, and the fields of the definition that differ.",
  input: z.strictObject({ id: runId }),
  output: z.object({
    run,
    good: run.optional().describe("Missing: none before it is recorded."),
    definition: z
      .object({
        number: z
          .object({ before: count, after: count })
          .describe("As `tasks.revisions` counts them: of the good run, and of this one."),
        before: fields.describe("The fields that differ."),
        after: fields,
      })
      .optional()
      .describe("Missing: no good run, or a definition is no longer recorded."),
  }),
  async run({ scope }, { id }) {
    const run = await findRun(scope, id);
    const good = await lastGood(scope, run);
    const definition = good && (await definitionsOf(scope, good, run));
    return { run, ...(good && { good }), ...(definition && { definition }) };
  },
});

async function lastGood({ store }: Scope, { id, task, enqueued }: Run): Promise<Run | undefined> {
  for (let offset = 0; offset < MOST; offset += PAGE) {
    const page = await store.runs.list(task, PAGE, offset);
    const found = page.find(
      (one) => one.id !== id && one.enqueued <= enqueued && one.outcome && SUCCESSES.has(one.outcome),
    );
    if (found || page.length < PAGE) return found;
  }
  return undefined;
}

async function definitionsOf({ store: { tasks } }: Scope, good: Run, { task: name, enqueued }: Run) {
  const [task, revisions] = await Promise.all([tasks.get(name), tasks.revisions(name)]);
  if (!task) return undefined;
  const current = { number: (revisions[0]?.number ?? 0) + 1, definition: task.definition };
  const oldest = revisions.at(-1);
  const inForce = (at: number) => {
    const found = revisions.toReversed().find(({ until }) => until > at) ?? current;
    // The beginning of the oldest recorded one is not known.
    return found === oldest && found.number > 1 ? undefined : found;
  };
  const [was, is] = [inForce(good.enqueued), inForce(enqueued)];
  if (!was || !is) return undefined;
  const { before = {}, after = {} } = differenceOf(was.definition, is.definition);
  return { number: { before: was.number, after: is.number }, before, after };
}
