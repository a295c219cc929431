import type { Skip } from "@carillon/sdk";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, count, refOf, taskRef, time } from "../shapes.js";

export const listSkips = operation({
  http: "GET /tasks/:queue/:owner/:id/skips",
  role: "viewer",
  reach: "owner",
  summary: "Lists the occurrences of a task that were not enqueued, and why; newest first.",
  input: z.strictObject(taskRef),
  output: as<{ skips: Skip[] }>(
    z.object({
      skips: z.array(
        z.object({
          reason: z.string(),
          from: time,
          to: time,
          decisions: count,
          at: time,
          by: z.string(),
          run: z.string().optional(),
          note: z.string().optional(),
        }),
      ),
    }),
  ),
  async run({ client }, input) {
    return { skips: await client.runs.skips(refOf(input)) };
  },
});
