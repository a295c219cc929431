import { ALERTS_QUEUE, CarillonError } from "@carillon/core";
import { assertName } from "@carillon/core/internal";
import { wholeNumber } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { changed, given } from "../shapes.js";
import { assertQueue } from "./queue.js";

const ANY_OWNER = "*";

/**
 * Occurrences above the limit wait, without delaying other owners, until a run of that owner ends; their task's catch-up policy treats them as
 * late. `enqueue` waits too; `trigger` is refused with `OWNER_LIMIT`. Runs that were enqueued while the owner had no limit do not count. A
 * limit that is raised or removed takes effect within 30 s.
 */
export const limitQueue = operation({
  http: "PUT /queues/:queue/limits/:owner",
  role: "admin",
  reach: "namespace",
  logs: "queue.limit",
  once: "script",
  example: { queue: "bells", owner: "acme", runs: 50 },
  summary:
    "Limits how many runs of one owner may be queued or running in a queue at once. Further occurrences wait until one of them ends; other owners are not delayed.",
  input: z.strictObject({
    queue: given,
    owner: given.describe("An owner; `*`: each without a limit of its own."),
    runs: z.number("not a number, or null").nullable().describe("1 to 100,000; null removes the limit."),
  }),
  output: changed,
  async run({ store, log }, { queue, owner, runs }) {
    assertName(queue, "queue");
    if (queue === ALERTS_QUEUE)
      throw new CarillonError("FORBIDDEN", "alerts go through this queue; they are not limited.", {
        field: "queue",
        remedy: "Limit the queues of the tasks that raise them.",
      });
    if (owner !== ANY_OWNER) assertName(owner, "owner");
    const limit = runs === null ? undefined : wholeNumber(runs, "runs", 1, 100_000);
    // The limits of a queue may outlive its tasks.
    if (limit !== undefined) await assertQueue(store, queue);
    const changed = await store.queues.setLimit(queue, owner, limit);
    if (changed) log({ queue, owner }, { details: { runs } });
    return { changed };
  },
});
