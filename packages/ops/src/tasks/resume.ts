import { z } from "zod";
import { operation } from "../operation.js";
import { changed, oneOf, refOf, taskRef } from "../shapes.js";

export const resumeTask = operation({
  http: "POST /tasks/:queue/:owner/:id/resume",
  role: "operator",
  reach: "owner",
  logs: "resume",
  summary: "Lets a paused task go on.",
  input: z.strictObject({
    ...taskRef,
    missed: oneOf(["skip", "catch-up"])
      .optional()
      .describe("Rule for what fell due meanwhile; `catch-up`: the task's policy decides. Default: skip."),
    mode: oneOf(["live", "shadow"])
      .optional()
      .describe("Whether its schedule enqueues from now on, or only records. Default: as it was."),
  }),
  output: changed,
  async run({ client, by }, { missed, mode, ...ref }) {
    return { changed: await client.resume(refOf(ref), { missed, mode, by }) };
  },
});
