import type { RunDetails } from "@carillon/sdk";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, count, runId, time } from "../shapes.js";
import { runShape } from "./run.js";

/** A run's id contains an `@`, which a path may contain unchanged or as `%40`. */
export const getRun = operation({
  http: "GET /runs/:id",
  role: "viewer",
  reach: "owner",
  summary: "Shows a run with the workers of its attempts, and what they printed.",
  input: z.strictObject({ id: runId }),
  output: as<RunDetails>(
    runShape.extend({
      attemptList: z.array(
        z.object({
          ...{ attempt: count, started: time },
          ended: time
            .optional()
            .describe("Missing: the run's own end is its end, it goes on, or its worker died."),
          ...{ worker: z.string(), pid: count, host: z.string() },
        }),
      ),
      output: z.array(z.object({ attempt: count, text: z.string(), cut: z.boolean() })),
    }),
  ),
  run: ({ client }, { id }) => client.runs.get(id),
});
