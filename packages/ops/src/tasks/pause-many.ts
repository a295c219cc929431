import { shortText } from "@carillon/sdk/internal";
import { z } from "zod";
import { bulk, bulkResult } from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter } from "../bulk/filter.js";
import { operation } from "../operation.js";
import { note } from "../shapes.js";

export const pauseMany = operation({
  http: "POST /tasks/pause",
  role: "operator",
  reach: "owner",
  logs: "pause",
  once: { known: "state", leaves: "whole", against: [["tasks.resumeMany"]] },
  example: { tag: "due" },
  summary: "Pauses all scheduled tasks that match.",
  input: z.strictObject({
    ...filter,
    note: note.describe("Why: shown with the task; at most 500 characters."),
    dryRun,
  }),
  output: bulkResult,
  async run(call, { note: reason, dryRun, ...input }) {
    const note = shortText(reason, "note");
    return bulk(call, {
      ...{ filter: checkedFilter(call.scope, input), dryRun, state: "scheduled" },
      act: async (_, name) => (await call.store.tasks.pause(name, call.by, note)) === "OK",
      // A pause that somebody else makes meanwhile stays.
      inverse: () => ({
        operation: "tasks.resumeMany",
        input: { missed: "catch-up", ...(note && { note }), ...(call.by && { pausedBy: call.by }) },
      }),
      details: { note: note || undefined },
    });
  },
});
