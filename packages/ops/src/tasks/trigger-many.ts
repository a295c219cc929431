import { CarillonError } from "@carillon/core";
import { assertName } from "@carillon/core/internal";
import { triggerOne } from "@carillon/sdk/internal";
import { z } from "zod";
import { bulk, bulkResult } from "../bulk/bulk.js";
import { checkedFilter, filter } from "../bulk/filter.js";
import { operation } from "../operation.js";
import { dryRun, flag, given, overlap } from "../shapes.js";

export const triggerMany = operation({
  http: "POST /tasks/trigger",
  role: "operator",
  reach: "owner",
  logs: "trigger",
  once: { known: "key", leaves: "whole", against: [["tasks.deleteMany"]] },
  example: { tag: "due", key: "asked" },
  summary:
    "Runs all tasks that match now. Those that their overlap policy, a freeze or a limit holds back are refused, each by itself.",
  input: z.strictObject({
    ...filter,
    key: given.optional().describe("Tasks that were triggered with it within a day are not counted."),
    overlap: overlap.optional().describe("Instead of the tasks' own."),
    force: flag.optional().describe("Even if a freeze holds the task."),
    dryRun,
  }),
  output: bulkResult,
  async run(call, { key, overlap, force, dryRun, ...input }) {
    if (key !== undefined) assertName(key, "key");
    const { scope, by } = call;
    return bulk(call, {
      ...{ filter: checkedFilter(scope, input), dryRun },
      act: async (_, name) => {
        const { outcome, repeated } = (await triggerOne(scope, name, by, { key, overlap, force })).result;
        if (outcome !== "skipped") return !repeated;
        throw new CarillonError("SKIPPED_OVERLAP", "an earlier run of the task has not ended.", {
          remedy: "Wait for it, or give the overlap policy allow.",
        });
      },
      details: { overlap },
    });
  },
});
