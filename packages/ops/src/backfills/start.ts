import type { Duration } from "@carillon/core";
import { durationOption, MAX_DURATION } from "@carillon/core/internal";
import { notFound } from "@carillon/sdk/internal";
import { newToken } from "@carillon/store";
import { z } from "zod";
import { TimeSlice } from "../occurrences/time-slice.js";
import { operation } from "../operation.js";
import { count, duration, taskRef } from "../shapes.js";
import { range, rangeOf, timesOf } from "./times.js";

export const startBackfill = operation({
  http: "POST /tasks/:queue/:owner/:id/backfills",
  role: "operator",
  reach: "owner",
  cost: "computes",
  logs: "backfill",
  summary:
    "Runs past occurrences of a task again, or for the first time, under its overlap policy or another. A node does it.",
  input: z.strictObject({
    ...taskRef,
    ...range,
    every: duration
      .optional()
      .describe("At most one occurrence in this time. Default: as fast as they can be."),
  }),
  output: z.object({
    id: z.string().optional().describe("Missing: nothing was started."),
    total: count.describe("Occurrences in the range."),
  }),
  status: [200, 202],
  async run({ scope, store, by, log }, { queue, owner, id: task, dryRun, every: pace, ...options }) {
    const given = rangeOf(options);
    const every = durationOption(pace as Duration | undefined, "every", 1, MAX_DURATION) ?? 0;
    const name = await scope.locate({ queue, owner, id: task });
    await store.calendars.refresh();
    const [now, stored] = await Promise.all([store.tasks.time(name.queue), store.tasks.get(name)]);
    if (!stored) throw notFound(name);
    const slice = new TimeSlice(Number.POSITIVE_INFINITY);
    const { ranges, total } = await timesOf(scope, stored, { ...given, now }, slice);
    if (dryRun || total === 0) return { total };
    const { from, to, overlap, only } = given;
    const id = newToken();
    await store.backfills.put({
      id,
      task: name,
      taskCreated: stored.created,
      from,
      to,
      at: from - 1,
      total,
      every,
      overlap,
      by: by || scope.actor,
      ...(only && { ranges }),
    });
    log(name, { details: { backfill: id, from, to, total, overlap, only } });
    return { id, total };
  },
});
