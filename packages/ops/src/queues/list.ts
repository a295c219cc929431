import { OUTCOMES } from "@carillon/core";
import { limitShape, pauseShape } from "@carillon/core/internal";
import type { QueueState } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count } from "../shapes.js";
import { namesOf } from "./queue.js";

const queue = z.object({
  name: z.string(),
  tasks: count.describe("For a caller that is bound to an owner, those of the owner."),
  paused: pauseShape
    .optional()
    .describe("Workers take no jobs. A pause by plain BullMQ records no time, name and note."),
  workers: count.optional().describe("Connected BullMQ workers. Missing: Redis does not say."),
  waiting: count.optional().describe("Jobs that a worker could take."),
  active: count.optional().describe("Jobs that workers hold."),
  limit: limitShape.optional().describe("BullMQ's own limits, if there are any."),
  oldestWaitingMs: count.optional().describe("Age of the job that has waited longest."),
  outcomes: z
    .record(z.enum(OUTCOMES), count)
    .readonly()
    .optional()
    .describe(
      "Runs by outcome, those of deleted tasks included. The numbers restart at 0 once the queue was empty.",
    ),
});

/** Counting workers takes a `CLIENT LIST`; for names alone use `names.list`. */
export const listQueues = operation({
  http: "GET /queues",
  role: "viewer",
  reach: "local",
  summary: "Lists the queues that have tasks or runs: whether each is paused, its jobs and its workers.",
  input: z.strictObject({}),
  output: z.object({ queues: z.array(queue) }),
  async run({ store, owner }) {
    const names = await namesOf({ store, owner });
    const workers = await store.queues.workers(names);
    const queues = names.map(async (name): Promise<z.output<typeof queue>> => {
      const [tasks, state, outcomes] = await Promise.all([
        store.tasks.count(name, owner),
        store.queues.state(name),
        owner === undefined ? store.runs.outcomes(name) : undefined,
      ]);
      const { paused, ...jobs } = state ?? ({} as Partial<QueueState>);
      return {
        name,
        tasks,
        ...(paused && { paused }),
        workers: workers?.get(name),
        ...(owner === undefined && { ...jobs, outcomes }),
      };
    });
    return { queues: await Promise.all(queues) };
  },
});
