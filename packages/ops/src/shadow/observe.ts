import { invalid } from "@carillon/core/internal";
import { roundedInstant } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { instant, refOf, taskRef } from "../shapes.js";

/** Most marks of one call. */
const MOST = 10_000;

export const observe = operation({
  http: "POST /tasks/:queue/:owner/:id/observe",
  role: "operator",
  reach: "owner",
  logs: false,
  once: "script",
  example: { id: "t1" },
  summary: "Marks times that another scheduler fired for a task, for the report about its shadow.",
  input: z.strictObject({
    ...taskRef,
    times: z
      .array(
        z.strictObject({
          nominal: instant,
          at: instant.optional().describe("The start. Default: `nominal`."),
        }),
      )
      .max(MOST, `more than ${MOST}`)
      .optional()
      .describe("Default: now, once."),
  }),
  async run({ scope }, { times, ...ref }) {
    const name = await scope.locate(refOf(ref));
    const { store } = scope;
    const now = await store.tasks.time(name.queue);
    const marks = (times ?? [{ nominal: now }]).map(({ nominal, at = nominal }) => ({
      nominal: roundedInstant(nominal, "times"),
      at: roundedInstant(at, "times"),
    }));
    if (marks.some(({ nominal }) => nominal > now))
      throw invalid("times", "in the future.", "Mark what has fired; the clock of Redis decides.");
    await store.observations.add(name, marks);
  },
});
