import type { CarillonError, Json } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { findRun } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { runId } from "../shapes.js";
import { triggerTask } from "../tasks/trigger.js";

export const replayRun = operation({
  http: "POST /runs/:id/replay",
  role: "operator",
  reach: "owner",
  logs: "trigger",
  once: "script",
  summary: "Runs the task of a run again now, with the payload that the run had, if it was not the task's.",
  input: z.strictObject({
    id: runId,
    overlap: triggerTask.input.shape.overlap,
    force: triggerTask.input.shape.force,
  }),
  output: triggerTask.output!,
  status: [202],
  async run(call, { id, ...how }) {
    const { task, payload } = await findRun(call.scope, id);
    const fault = faultOf({ id, payload });
    if (fault) throw fault;
    return triggerTask.run(call, { ...task, ...how, payload });
  },
});

/** The reason why a run cannot be run again: only the length of its payload was kept. */
export function faultOf({
  id,
  payload,
}: {
  id: string;
  payload?: Json | undefined;
}): CarillonError | undefined {
  const { cut, length, ...others } = Object(payload) as Record<string, Json>;
  if (cut !== true || typeof length !== "number" || Object.keys(others).length > 0) return undefined;
  return conflict(`the payload of run ${id} was too long to keep.`, "Trigger its task with the payload.");
}
