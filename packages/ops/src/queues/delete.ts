import { assertName } from "@carillon/core/internal";
import { z } from "zod";
import { exampleTask, operation } from "../operation.js";
import { count as countShape, given } from "../shapes.js";

export const deleteQueue = operation({
  http: "DELETE /queues/:queue",
  role: "admin",
  reach: "namespace",
  logs: "queue.delete",
  once: {
    known: "state",
    leaves: "whole",
    against: [["tasks.put", { task: exampleTask("g1", { every: "2h" }, "gongs") }]],
  },
  example: { queue: "gongs" },
  summary:
    "Deletes a queue with its tasks, their records, and all jobs and settings that BullMQ keeps of it. Stop its workers first.",
  input: z.strictObject({ queue: given }),
  output: z.object({ count: countShape.describe("Number of its tasks.") }),
  async run({ store, log }, { queue }) {
    const count = await store.deleteQueue(assertName(queue, "queue"));
    log({ queue }, { count });
    return { count };
  },
});
