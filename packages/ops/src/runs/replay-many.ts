import type { Run } from "@carillon/core";
import { assertName, type ReplayedRun } from "@carillon/core/internal";
import { z } from "zod";
import { assertRate, batchId, idFrom, paced, putAll } from "../backfills/batch.js";
import { backfillsOf } from "../backfills/doings.js";
import { startBackfills } from "../backfills/start-many.js";
import { type BulkRefusal, nameOf, Tally } from "../bulk/bulk.js";
import { operation } from "../operation.js";
import { count, dryRun, given, time } from "../shapes.js";
import { conditions, runsToReplay, type TaskRuns } from "./runs-to-replay.js";

/** Runs of one backfill, all of which each of its steps reads; entries of samples. */
const [PIECE, SAMPLE] = [500, 10];
const MINUTE = 60_000;

export const replayRuns = operation({
  http: "POST /runs/replay",
  role: "operator",
  reach: "owner",
  cost: "computes",
  logs: "backfill",
  once: { known: "key", leaves: "whole", against: [["runs.replayMany", { key: "other" }]] },
  example: { from: "2026-01-01T00:00:00Z", perMinute: 60_000, key: "again" },
  summary:
    "Runs many runs again, evenly spread: those named, or all that failed of a range. Each keeps its nominal time and payload, and waits for a run in its way.",
  input: z.strictObject({
    runs: z
      .array(given, "not a list")
      .readonly()
      .optional()
      .describe("Ids of final runs of any outcome, at most 1,000. Not together with a condition."),
    ...conditions,
    perMinute: startBackfills.input.shape.perMinute.describe(
      "Runs a minute, of all tasks together: 0.001 to 60,000. Required unless `dryRun`.",
    ),
    key: given
      .optional()
      .describe("A call with the key of an earlier one, within 7 days, starts nothing twice."),
    dryRun: dryRun.describe("Change nothing, count the runs and say when they would be over."),
  }),
  output: startBackfills.output!.extend({
    total: count.describe("Runs to run again."),
    left: count.describe(
      "Failed occurrences that are left out: they succeeded since, are under way, wait for a retry, or another replay or backfill has them.",
    ),
    until: time.optional().describe("Its end at this pace."),
  }),
  status: [200, 202],
  async run(call, { runs: ids, perMinute, key, dryRun, ...filter }) {
    const { scope, store, by, log } = call;
    if (perMinute !== undefined || !dryRun) assertRate(perMinute);
    if (key !== undefined) assertName(key, "key");
    const batch = batchId(key && `${scope.owner ?? ""} ${key}`);
    // Taken before anything is read: of two calls at once, one is refused.
    const queues = await scope.queues();
    const turn = dryRun ? undefined : await store.backfills.takeTurn(queues);
    const backfills = await backfillsOf(store, queues);
    const own = [...backfills.values()].flat().filter((one) => one.batch === batch);
    const refused = new Tally<BulkRefusal>(SAMPLE);
    const { found, left } = await runsToReplay(call, ids, filter, backfills, batch, refused);
    const tasks = [
      ...own.map(({ task, total }) => ({ ...task, total })),
      ...found.map(({ task, total }) => ({ ...nameOf(task), total })),
    ];
    const total = tasks.reduce((sum, { total }) => sum + total, 0);
    const sample = tasks.slice(0, SAMPLE);
    const answer = { count: tasks.length, total, left, sample, refused: refused.result };
    if (perMinute === undefined || total === 0) return answer;
    const until = (await store.freezes.time()) + Math.ceil((total / perMinute) * MINUTE);
    if (dryRun) return { ...answer, until };
    const all = paced(found.flatMap(inPieces), perMinute).map(({ times, every, after }) => {
      const { task, runs, total } = times;
      const [first, last] = [runs[0] as Run, runs.at(-1) as Run];
      const name = { task: nameOf(task), taskCreated: task.created };
      const what = { from: first.nominal, to: last.nominal, at: -1, runs: runs.map(replayed), total };
      const how = { every, overlap: undefined, batch, by: by || scope.actor };
      return { backfill: { id: idFrom(`${batch} ${first.id}`), ...name, ...what, ...how }, after };
    });
    try {
      await putAll(store, all, turn);
    } finally {
      // Also if Redis failed halfway: the batch can be cancelled.
      const { owner, queue } = filter;
      const names = sample.map(({ total: _, ...name }) => name);
      const details = { batch, runs: total, perMinute };
      if (found.length > 0) log({ owner, queue }, { count: tasks.length, sample: names, details });
    }
    return { ...answer, until, batch };
  },
});

function inPieces({ task, runs }: TaskRuns): TaskRuns[] {
  return Array.from({ length: Math.ceil(runs.length / PIECE) }, (_, i) => {
    const some = runs.slice(i * PIECE, (i + 1) * PIECE);
    return { task, runs: some, total: some.length };
  });
}

function replayed({ id, key, nominal, payload }: Run): ReplayedRun {
  return { key, nominal, ...(payload !== undefined && { payloadOf: id }) };
}
