import { invalid } from "@carillon/core/internal";
import { shortText } from "@carillon/sdk/internal";
import type { StoredTask } from "@carillon/store";
import { z } from "zod";
import { assertRate, batchId } from "../backfills/batch.js";
import { bulk, bulkResult } from "../bulk/bulk.js";
import { checkedFilter, dryRun } from "../bulk/filter.js";
import { OwedRuns, replayed, replayedBy } from "../bulk/owed-runs.js";
import { operation } from "../operation.js";
import { given, oneOf } from "../shapes.js";
import { pausedFilter, wasPaused } from "./resume-plan.js";

/**
 * With `note` or `pausedBy`, only tasks that were paused with this note or by this name, so that nobody else's pause is undone. `missed`: the
 * rule for owed occurrences. `skip` drops them, `catch-up` lets the catch-up policies decide; `latest` and `all` run the last one of each task,
 * or each of them, as backfills at a pace, whatever the policies say.
 */
export const resumeMany = operation({
  http: "POST /tasks/resume",
  role: "operator",
  reach: "owner",
  cost: "computes",
  logs: "resume",
  once: {
    known: "state",
    leaves: "whole",
    against: [["tasks.resumeMany", { missed: "catch-up", perMinute: undefined }], ["tasks.pauseMany"]],
  },
  example: { tag: "paused", missed: "all", perMinute: 60_000 },
  summary: "Resumes all paused tasks that match.",
  input: z.strictObject({
    ...pausedFilter,
    missed: oneOf(["skip", "catch-up", "latest", "all"])
      .optional()
      .describe(
        "Occurrences that fell due meanwhile: skip them, apply the catch-up policy (`catch-up`), run the newest of each task (`latest`), or every one (`all`). Default: skip.",
      ),
    perMinute: z
      .number("not a number")
      .optional()
      .describe(
        "With `latest` or `all`: occurrences a minute, of all tasks together; at most 60,000. Required for `all`.",
      ),
    dryRun,
  }),
  output: bulkResult.extend({
    batch: given.optional().describe("Id of the backfills that it started."),
    replayed: replayed
      .optional()
      .describe(
        "Tasks that match, and that another call with `latest` or `all` has resumed, now or in the last day: its backfills run the occurrences that they owed.",
      ),
  }),
  async run(call, { missed = "skip", perMinute, dryRun, ...input }) {
    const { scope, store, by } = call;
    const replays = missed === "latest" || missed === "all";
    if (perMinute !== undefined || (missed === "all" && !dryRun)) assertRate(perMinute);
    if (perMinute !== undefined && !replays)
      throw invalid("perMinute", `given with missed ${missed}.`, "Leave it out.");
    const { note, pausedBy, ...checked } = checkedFilter(scope, input, ["note", "pausedBy"]);
    shortText(note, "note");
    shortText(pausedBy, "pausedBy");
    const isMeant = (task: Pick<StoredTask, "paused">) => wasPaused(task, { note, pausedBy });
    const named = by.replace(/\s/g, "_");
    const batch = replays && !dryRun ? batchId() : undefined;
    const replay =
      batch === undefined || !replays
        ? undefined
        : await OwedRuns.of(scope, { checked, isMeant, missed, perMinute }, { batch, by });
    const result = await bulk(call, {
      ...{ filter: checked, dryRun, state: "paused", isMeant },
      act: async (task, name) => {
        if (replay) return replay.resume(task, name, named);
        return (await store.tasks.resume(name, missed as "skip" | "catch-up", named)) === "OK";
      },
      inverse: (tasks) => {
        const [reason, ...others] = new Set(tasks.map(({ paused }) => paused?.note));
        // Backfills that were started would go on, and a call gives one note to all.
        if (replay || others.length > 0) return undefined;
        return { operation: "tasks.pauseMany", input: reason === undefined ? {} : { note: reason } };
      },
      details: { missed, note, pausedBy, perMinute, batch },
    });
    const others = await replayedBy(call, checked, isMeant, batch);
    return {
      ...result,
      ...(replay && replay.started > 0 && { batch }),
      ...(others && { replayed: others }),
    };
  },
});
