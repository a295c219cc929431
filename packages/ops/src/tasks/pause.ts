import { invalid } from "@carillon/core/internal";
import { z } from "zod";
import { putFreeze } from "../freezes/put.js";
import { operation } from "../operation.js";
import { changed, flag, given, instant, refOf, taskRef } from "../shapes.js";

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
    note: given.optional().describe("At most 500 characters."),
    until: instant.optional().describe("End of the pause. Without: until someone resumes the task."),
    cancelQueued: flag.optional().describe("Also cancel its queued runs."),
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
