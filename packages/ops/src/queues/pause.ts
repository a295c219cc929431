import { shortText } from "@carillon/sdk/internal";
import { z } from "zod";
import { holds, holdsOf } from "../holds.js";
import { operation } from "../operation.js";
import { changed, dryRun, given, note } from "../shapes.js";
import { assertPausable } from "./queue.js";

/**
 * Scheduling goes on: jobs wait, and a task whose overlap policy is `skip` skips occurrences that come due while its run waits. If the queue
 * is paused already, the first note and name stay.
 */
export const pauseQueue = operation({
  http: "POST /queues/:queue/pause",
  role: "operator",
  reach: "namespace",
  logs: "queue.pause",
  once: "script",
  example: { queue: "bells" },
  summary:
    "Pauses a queue: its workers take no more jobs, and finish those they have. Scheduling goes on: jobs wait, and a task with overlap `skip` skips occurrences that come due while its run waits. A pause of tasks is another thing.",
  input: z.strictObject({
    queue: given,
    note: note.describe("Why: shown with the queue; at most 500 characters."),
    dryRun: dryRun.describe("Pause nothing, count what it would hold."),
  }),
  output: changed.extend({ holds }),
  async run({ store, scope, by, log }, { queue, dryRun, ...given }) {
    const note = shortText(given.note, "note");
    await assertPausable(store, queue);
    if (dryRun) {
      const state = await store.queues.state(queue);
      return { changed: state?.paused === undefined, holds: await holdsOf(scope, { queue }) };
    }
    const changed = await store.queues.pause(queue, by, note);
    if (changed) log({ queue }, { details: { note: note || undefined } });
    return { changed, holds: await holdsOf(scope, { queue }) };
  },
});
