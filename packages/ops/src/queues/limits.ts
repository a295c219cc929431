import { assertName } from "@carillon/core/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, given } from "../shapes.js";

export const queueLimits = operation({
  http: "GET /queues/:queue/limits",
  role: "viewer",
  reach: "namespace",
  summary:
    "Lists how many runs of each owner may be queued or running in a queue at once. `*`: each owner without a limit of its own.",
  input: z.strictObject({ queue: given }),
  output: z.object({ limits: z.record(z.string(), count) }),
  run: async ({ store }, { queue }) => ({ limits: await store.queues.limits(assertName(queue, "queue")) }),
});
