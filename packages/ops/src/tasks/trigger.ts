import { CarillonError, type Json } from "@carillon/core";
import type { TriggerResult } from "@carillon/sdk";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, flag, given, overlap, refOf, taskRef, time, warning } from "../shapes.js";

export const triggerTask = operation({
  http: "POST /tasks/:queue/:owner/:id/trigger",
  role: "operator",
  // It says what a run does, such as the URL that it calls: who gives one defines work, as a put does.
  adminFields: ["payload"],
  reach: "owner",
  logs: "trigger",
  once: "script",
  example: { id: "t1", key: "asked" },
  summary:
    "Runs a task now, paused or not. `SKIPPED_OVERLAP` if its overlap policy, or `overlap`, forbids it.",
  input: z.strictObject({
    ...taskRef,
    key: given.optional().describe("All triggers of the task with this key, within a day, make one run."),
    overlap: overlap.optional().describe("Policy while a run is open. Default: the task's."),
    force: flag.optional().describe("Even if a freeze holds the task."),
    payload: z.unknown().optional().describe("Instead of the task's, for this run."),
  }),
  output: as<Exclude<TriggerResult, { outcome: "skipped" }>>(
    z.object({
      outcome: z.enum(["enqueued", "queued"]).describe("`queued`: it waits for the run in its way."),
      run: z.string().optional(),
      key: z.string().describe("The idempotency key of its handler."),
      enqueued: time.optional(),
      repeated: z.boolean().describe("An earlier call with this key made the run."),
      warnings: z.array(warning),
    }),
  ),
  status: [202],
  async run({ client, by }, { key, overlap, force, payload, ...ref }) {
    const how = { key, overlap, force, payload: payload as Json, by };
    const triggered = await client.trigger(refOf(ref), how);
    if (triggered.outcome !== "skipped") return triggered;
    throw new CarillonError(triggered.code, "an earlier run of the task has not ended.", {
      remedy: 'Wait for it, or send {"overlap":"allow"}.',
    });
  },
});
