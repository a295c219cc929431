import { z } from "zod";
import { deleteFreeze } from "../freezes/delete.js";
import { isPauseOf } from "../freezes/freeze.js";
import { operation } from "../operation.js";
import { changed, oneOf, refOf, taskRef } from "../shapes.js";

export const resumeTask = operation({
  http: "POST /tasks/:queue/:owner/:id/resume",
  role: "operator",
  reach: "owner",
  logs: "resume",
  once: "script",
  example: { id: "p1" },
  summary: "Lets a paused task go on, also one that was paused until a time.",
  input: z.strictObject({
    ...taskRef,
    missed: oneOf(["skip", "catch-up"])
      .optional()
      .describe("Rule for what fell due meanwhile; `catch-up`: the task's policy decides. Default: skip."),
    mode: oneOf(["live", "shadow"])
      .optional()
      .describe("Enqueue from now on, or only record. Default: as it was."),
  }),
  output: changed,
  async run(call, { missed, mode, ...ref }) {
    const { client, scope, store, by } = call;
    const changed = await client.resume(refOf(ref), { missed, mode, by });
    const name = await scope.locate(refOf(ref));
    const pauses = (await store.freezes.list()).filter((one) => isPauseOf(one, name));
    for (const { id } of pauses) await deleteFreeze.run(call, { id });
    return { changed: changed || pauses.length > 0 };
  },
});
