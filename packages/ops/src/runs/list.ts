import { z } from "zod";
import { operation } from "../operation.js";
import { refOf, taskRef, wholeNumber } from "../shapes.js";
import { run } from "./run.js";

export const listRuns = operation({
  http: "GET /tasks/:queue/:owner/:id/runs",
  role: "viewer",
  reach: "owner",
  summary: "Lists a task's runs, newest first; those that are not final before the others.",
  input: z.strictObject({
    ...taskRef,
    limit: wholeNumber.optional().describe("Most runs, 1 to 1,000. Default: 20."),
    offset: wholeNumber.optional().describe("Leave out this many. Default: 0."),
  }),
  output: z.object({ runs: z.array(run) }),
  async run({ client }, { limit, offset, ...ref }) {
    return { runs: await client.runs.list(refOf(ref), { limit, offset }) };
  },
});
