import { CarillonError } from "@carillon/core";
import { invalid } from "@carillon/core/internal";
import { newToken } from "@carillon/store";
import { z } from "zod";
import {
  type BulkRefusal,
  nameOf,
  refusalOf,
  refused as refusedShape,
  selected,
  Tally,
} from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter } from "../bulk/filter.js";
import { TimeSlice } from "../occurrences/time-slice.js";
import { operation } from "../operation.js";
import { count, taskName } from "../shapes.js";
import { assertRate, batchId, paced, putAll } from "./batch.js";
import { left, othersOf, range, rangeOf, type Times, timesOf } from "./times.js";

/** Limits beyond which a call is more likely a mistake: occurrences and tasks. */
const [MOST_IN_ALL, MOST_TASKS] = [1_000_000, 10_000];
/** Entries of a sample. */
const SAMPLE = 10;

/** Each task has a backfill of its own, of this `batch`. Without `perMinute` it only counts, as with `dryRun`. */
export const startBackfills = operation({
  http: "POST /backfills",
  role: "operator",
  reach: "owner",
  cost: "computes",
  logs: "backfill",
  once: { known: "new", leaves: "whole", against: [["tasks.deleteMany"]] },
  example: { tag: "due", from: "2026-01-01T00:00:00Z", to: "2026-01-01T00:08:00Z", perMinute: 60_000 },
  summary: "Backfills past occurrences of all tasks that match, evenly spread: `perMinute` in all.",
  input: z.strictObject({
    ...filter,
    ...range,
    dryRun,
    perMinute: z
      .number("not a number")
      .optional()
      .describe("Occurrences a minute, of all tasks together: 0.001 to 60,000. Required unless `dryRun`."),
  }),
  output: z.object({
    count: count.describe("Number of tasks with such occurrences."),
    total: count.describe("Occurrences of all of them."),
    left,
    sample: z
      .array(taskName.extend({ total: count }))
      .readonly()
      .describe("The first ten of these tasks."),
    refused: refusedShape,
    batch: z.string().optional().describe("Id to list and cancel them. Missing: nothing was started."),
  }),
  status: [200, 202],
  async run(
    { scope, store, by, log },
    { from: first, to: last, overlap: how, only: which, dryRun, perMinute, ...input },
  ) {
    const given = rangeOf({ from: first, to: last, overlap: how, only: which });
    if (perMinute !== undefined || !dryRun) assertRate(perMinute);
    const checked = checkedFilter(scope, input);
    await store.calendars.refresh();
    const now = await store.freezes.time();
    if (given.to > now) throw invalid("to", "in the future.", "A backfill runs past times only.");
    const { turn, backfills } = await othersOf(store, await scope.queuesOf(checked.queue), {
      only: which,
      dryRun,
    });
    const [found, refused] = [[] as Times[], new Tally<BulkRefusal>(SAMPLE)];
    const slice = new TimeSlice(Number.POSITIVE_INFINITY);
    let [total, left] = [0, 0];
    for await (const page of selected(scope, checked, undefined, refused)) {
      for (const task of page) {
        const times = await timesOf(scope, task, { ...given, now }, backfills, slice).catch(
          (error: unknown) => refusalOf(nameOf(task), error),
        );
        if ("code" in times) {
          refused.add(times);
          continue;
        }
        left += times.left;
        total += times.total;
        if (times.total > 0) found.push(times);
        if (found.length > MOST_TASKS || total > MOST_IN_ALL) throw tooMany();
      }
    }
    const sample = found.slice(0, SAMPLE).map(({ name, total }) => ({ ...name, total }));
    const answer = {
      ...{ count: found.length, total, sample, refused: refused.result },
      ...(which && { left }),
    };
    if (dryRun || perMinute === undefined || total === 0) return answer;
    const { from, to, overlap, only } = given;
    const batch = batchId();
    const more = { overlap, by: by || scope.actor, batch };
    const all = paced(found, perMinute).map(
      ({ times: { name: task, taskCreated, ranges, total }, every, after }) => ({
        backfill: {
          ...more,
          id: newToken(),
          task,
          taskCreated,
          from,
          to,
          at: from - 1,
          total,
          every,
          ...(only && { ranges }),
        },
        after,
      }),
    );
    const { owner, tag, queue } = checked;
    const names = sample.map(({ total: _, ...name }) => name);
    const details = { batch, from, to, total, perMinute, overlap, only };
    try {
      await putAll(store, all, turn);
    } finally {
      // Also if Redis failed halfway: the batch can be cancelled.
      log({ owner, tag, queue }, { count: found.length, sample: names, details });
    }
    return { ...answer, batch };
  },
});

function tooMany(): CarillonError {
  const what = `more than ${MOST_TASKS} tasks, or ${MOST_IN_ALL} occurrences.`;
  return new CarillonError("INVALID_OPTION", what, {
    remedy: "Give a shorter range, or select fewer tasks.",
  });
}
