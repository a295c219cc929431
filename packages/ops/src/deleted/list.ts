import { assertName, parseLocalName } from "@carillon/core/internal";
import { instant as instantOf } from "@carillon/sdk/internal";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { instant, taskName, time } from "../shapes.js";

export const listDeleted = operation({
  http: "GET /deleted",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the tasks that were deleted in the last 7 days and that restore puts again, newest first; of each owner in a queue at most 10,000.",
  input: z.strictObject({
    queue: conditions.queue,
    owner: conditions.owner,
    from: instant.optional().describe("Only those that were deleted since then."),
  }),
  output: z.object({
    deleted: z.array(
      z.object({
        task: taskName,
        at: time,
        until: time.describe("End of the time in which it can be restored."),
      }),
    ),
  }),
  async run({ scope, store: { freezes, registry, tasks } }, input) {
    const { owner } = scope.bind(input);
    if (owner !== undefined) assertName(owner, "owner");
    const from = input.from === undefined ? 0 : instantOf(input.from, "from");
    const [now, queues] = await Promise.all([
      freezes.time(),
      input.queue === undefined ? registry.queuesAndPast() : [assertName(input.queue, "queue")],
    ]);
    const found = await Promise.all(
      queues.map(async (queue) =>
        (await tasks.deleted(queue, from, now)).map(({ local, ...times }) => ({
          task: { queue, ...parseLocalName(local) },
          ...times,
        })),
      ),
    );
    const deleted = found
      .flat()
      .filter(({ task }) => owner === undefined || task.owner === owner)
      .sort((a, b) => b.at - a.at);
    return { deleted };
  },
});
