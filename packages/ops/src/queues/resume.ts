import { assertName } from "@carillon/core/internal";
import { shown } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { changed, given } from "../shapes.js";
import { assertQueue } from "./queue.js";

export const resumeQueue = operation({
  http: "POST /queues/:queue/resume",
  role: "operator",
  reach: "namespace",
  logs: "queue.resume",
  once: "script",
  example: { queue: "gongs" },
  summary: "Lets the workers of a queue take jobs again, no matter who paused it.",
  input: z.strictObject({ queue: given }),
  output: changed,
  async run({ store, log }, { queue }) {
    // A pause outlives the last task.
    const before = await store.queues.state(assertName(queue, "queue"));
    const changed = await store.queues.resume(queue);
    if (changed) log({ queue }, before?.paused && { before: shown({ paused: before.paused }) });
    else await assertQueue(store, queue);
    return { changed };
  },
});
