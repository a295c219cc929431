import { isCarillonError } from "@carillon/core";
import { wholeNumber as whole } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { dryRun, refOf, taskRef, wholeNumber } from "../shapes.js";
import { ifRevision } from "./put.js";
import { locate, revisionNamed, revisionsOf } from "./revisions.js";
import { putResult } from "./task.js";

/** The present definition becomes a revision. */
export const restoreTask = operation({
  http: "POST /tasks/:queue/:owner/:id/restore",
  role: "admin",
  reach: "owner",
  logs: "put",
  once: "script",
  example: { id: "d1" },
  summary:
    "Puts an earlier definition of a task again; neither pauses nor resumes it. A task that was deleted in the last 7 days is created again, paused if it was; its runs and statistics do not come back.",
  input: z.strictObject({
    ...taskRef,
    number: wholeNumber.optional().describe("As `revisions` lists it. Default: the newest."),
    ifRevision,
    dryRun,
  }),
  output: putResult,
  async run({ client, scope, by }, { number, ifRevision, dryRun, ...ref }) {
    if (number !== undefined) whole(number, "number", 1, Number.MAX_SAFE_INTEGER);
    const name = await locate(scope, refOf(ref));
    const revisions = await revisionsOf(scope, name);
    const { definition, deleted } = revisionNamed(revisions, number);
    // A task that was paused when it was deleted comes back paused.
    const task = deleted === undefined ? definition : { ...definition, enabled: deleted !== "paused" };
    if (dryRun || ifRevision !== undefined) return client.put(task, { by, ifRevision, dryRun });
    return client
      .update(name, () => definition, { by })
      .catch((error: unknown) => {
        if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
        return client.put(task, { by, ifRevision: "absent" });
      });
  },
});
