import { invalid } from "@carillon/core/internal";
import { z } from "zod";
import { putFreeze } from "../freezes/put.js";
import { operation } from "../operation.js";
import { changed, flag, instant, note, refOf, taskRef } from "../shapes.js";

export const pauseTask = operation({
  http: "POST /tasks/:queue/:owner/:id/pause",
  role: "operator",
  reach: "owner",
  logs: "pause",
  once: "script",
  example: { id: "t1" },
  summary: "Holds a task's future occurrences; until a time, by a freeze of this task alone.",
  input: z.strictObject({
    ...taskRef,
    note: note.describe("Why: shown with the task; at most 500 characters."),
    until: instant
      .optional()
      .describe(
        "End of the pause, a freeze of this task that a resume ends too. Default: none, until someone resumes it.",
      ),
    cancelQueued: flag.optional().describe("Cancel its runs that wait for a worker, too."),
  }),
  output: changed.extend({ freeze: z.string().optional().describe("Id of the freeze, with `until`.") }),
  async run(call, { note, cancelQueued, until, ...ref }) {
    const { client, by } = call;
    if (until === undefined) return { changed: await client.pause(refOf(ref), { note, cancelQueued, by }) };
    if (cancelQueued)
      throw invalid("cancelQueued", "given with until.", "Cancel the runs, or pause without an end.");
    const { id } = await putFreeze.run(call, { tasks: [refOf(ref)], until, note });
    return { changed: true, freeze: id };
  },
});
