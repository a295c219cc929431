import { CarillonError } from "@carillon/core";
import { assertName } from "@carillon/core/internal";
import { triggerOne } from "@carillon/sdk/internal";
import { z } from "zod";
import { bulk, bulkResult } from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter } from "../bulk/filter.js";
import { operation } from "../operation.js";
import { flag, given, overlap } from "../shapes.js";

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
    key: given
      .optional()
      .describe(
        "All triggers of a task with this key, within a day, make one run; tasks that have it are not counted.",
      ),
    overlap: overlap.optional().describe("Policy while a run is open. Default: the task's."),
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
