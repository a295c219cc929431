import type { Duration } from "@carillon/core";
import { durationOption, MAX_DURATION } from "@carillon/core/internal";
import { notFound } from "@carillon/sdk/internal";
import { newToken } from "@carillon/store";
import { z } from "zod";
import { TimeSlice } from "../occurrences/time-slice.js";
import { operation } from "../operation.js";
import { count, duration, taskRef } from "../shapes.js";
import { left, othersOf, range, rangeOf, timesOf } from "./times.js";

export const startBackfill = operation({
  http: "POST /tasks/:queue/:owner/:id/backfills",
  role: "operator",
  reach: "owner",
  cost: "computes",
  logs: "backfill",
  once: "script",
  example: { id: "t1", from: "2026-01-01T00:00:00Z", to: "2026-01-01T00:08:00Z" },
  summary:
    "Runs past occurrences of a task again, or for the first time, under its overlap policy or another. A node does it.",
  input: z.strictObject({
    ...taskRef,
    ...range,
    every: duration.optional().describe("At most one occurrence in this time. Default: as fast as possible."),
  }),
  output: z.object({
    id: z.string().optional().describe("Missing: nothing was started."),
    total: count.describe("Occurrences in the range."),
    left,
  }),
  status: [200, 202],
  async run({ scope, store, by, log }, { queue, owner, id: task, dryRun, every: pace, ...options }) {
    const given = rangeOf(options);
    const every = durationOption(pace as Duration | undefined, "every", 1, MAX_DURATION) ?? 0;
    const name = await scope.locate({ queue, owner, id: task });
    await store.calendars.refresh();
    const { from, to, overlap, only } = given;
    const { turn, backfills } = await othersOf(store, [name.queue], { only, dryRun });
    const [now, stored] = await Promise.all([store.tasks.time(name.queue), store.tasks.get(name)]);
    if (!stored) throw notFound(name);
    const slice = new TimeSlice(Number.POSITIVE_INFINITY);
    const { ranges, total, left } = await timesOf(scope, stored, { ...given, now }, backfills, slice);
    const answer = { total, ...(only && { left }) };
    if (dryRun || total === 0) return answer;
    const id = newToken();
    const range = { from, to, at: from - 1, total, ...(only && { ranges }) };
    const its = { id, task: name, taskCreated: stored.created, by: by || scope.actor };
    await store.backfills.put({ ...its, ...range, every, overlap }, 0, turn);
    log(name, { details: { backfill: id, from, to, total, overlap, only } });
    return { id, ...answer };
  },
});
