import { z } from "zod";
import { operation } from "../operation.js";
import { changed, runId } from "../shapes.js";

export const cancelRun = operation({
  http: "POST /runs/:id/cancel",
  role: "operator",
  reach: "owner",
  logs: "cancel",
  once: "script",
  summary: "Requests the end of a run: a queued one never starts, a running one gets its signal aborted.",
  input: z.strictObject({ id: runId }),
  output: changed,
  async run({ client, by }, { id }) {
    return { changed: await client.runs.cancel(id, { by }) };
  },
});
