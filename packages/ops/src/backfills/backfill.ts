import { CarillonError } from "@carillon/core";
import { isToken, quote } from "@carillon/core/internal";
import type { Backfill } from "@carillon/store";
import { z } from "zod";
import type { Call } from "../operation.js";
import { count, overlap, pause, taskName, time } from "../shapes.js";

export const STATES = ["running", "done", "cancelled"] as const;

export const backfill = z
  .object({
    id: z.string(),
    task: taskName,
    taskCreated: time.optional(),
    state: z.enum(STATES),
    from: time.describe("First nominal time."),
    to: time.describe("Last nominal time."),
    at: time.describe(
      "The last nominal time that is decided; before the first step, just before `from`. Of a replay: the place of its last run, from -1.",
    ),
    total: count.describe("Occurrences in the range when it was put."),
    enqueued: count,
    skipped: count,
    every: count.describe("Least time between two occurrences in ms; 0: as fast as possible."),
    overlap: overlap.optional(),
    ranges: z
      .array(z.tuple([time, time]).readonly())
      .readonly()
      .optional(),
    replay: z.boolean().describe("It runs runs again, in order, and not all times of its range."),
    batch: z.string().optional().describe("Id of the call that started it together with others."),
    pause: pause
      .optional()
      .describe("The pause whose owed occurrences it runs. Missing: no resume has started it."),
    by: z.string(),
    created: time,
  })
  .meta({ id: "Backfill" });

export function withoutRuns({ runs, ...rest }: Backfill): z.input<typeof backfill> {
  return { ...rest, replay: runs !== undefined };
}

/** @throws `BACKFILL_NOT_FOUND` */
export async function findBackfill({ store, owner }: Call, id: string): Promise<Backfill> {
  const all = isToken(id) ? await store.registry.queues() : [];
  const found = await Promise.all(all.map((queue) => store.backfills.get(queue, id)));
  const backfill = found.find((one) => one !== undefined);
  if (backfill && (owner === undefined || backfill.task.owner === owner)) return backfill;
  throw backfillNotFound(id);
}

export function backfillNotFound(id: string): CarillonError {
  return new CarillonError("BACKFILL_NOT_FOUND", `there is no backfill ${quote(id)}.`, {
    remedy: "It may have ended more than 7 days ago, or its task was deleted.",
  });
}
