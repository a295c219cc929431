import { z } from "zod";
import { holds, holdsOf } from "../holds.js";
import { operation } from "../operation.js";
import { given } from "../shapes.js";
import { assertPausable } from "./queue.js";

export const previewPause = operation({
  http: "POST /queues/:queue/pause/preview",
  role: "operator",
  reach: "namespace",
  logs: false,
  summary: "Counts what a pause of the queue would hold, and pauses nothing.",
  input: z.strictObject({ queue: given }),
  output: z.object({ holds }),
  async run({ store, scope }, { queue }) {
    await assertPausable(store, queue);
    return { holds: await holdsOf(scope, { queue }) };
  },
});
