import { defineTask } from "@carillon/sdk";
import { z } from "zod";

/** The contract: it has no code, so the API server that imports it does not load what the code needs. */
export const report = defineTask("report", {
  queue: "reports",
  payload: z.object({ tenant: z.string() }),
});
