import { z } from "zod";
import { operation } from "../operation.js";
import { changed, flag, given, refOf, taskRef } from "../shapes.js";

export const pauseTask = operation({
  http: "POST /tasks/:queue/:owner/:id/pause",
  role: "operator",
  reach: "owner",
  logs: "pause",
  summary: "Holds a task's future occurrences.",
  input: z.strictObject({
    ...taskRef,
    note: given.optional().describe("At most 500 characters."),
    cancelQueued: flag.optional().describe("Also cancel its queued runs."),
  }),
  output: changed,
  async run({ client, by }, { note, cancelQueued, ...ref }) {
    return { changed: await client.pause(refOf(ref), { note, cancelQueued, by }) };
  },
});
