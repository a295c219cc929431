import { setTimeout as pause } from "node:timers/promises";
import type { Worker as BullWorker } from "bullmq";

/** A close is given up when no handler has run for this many looks, so many ms apart. */
const QUIET_LOOKS = 15;
const LOOK_EVERY = 200;

/**
 * BullMQ's close can wait for ever on a connection that was lost. Once no handler has run for a while there is nothing left
 * to wait for: whatever was not said, the job itself will tell.
 */
export async function closeWorker(worker: BullWorker, running: () => number): Promise<void> {
  const closed = worker.close().catch(() => {});
  let done = false;
  void closed.then(() => {
    done = true;
  });
  for (let quiet = 0; !done && quiet < QUIET_LOOKS; ) {
    await Promise.race([closed, pause(LOOK_EVERY, undefined, { ref: false })]);
    quiet = running() > 0 ? 0 : quiet + 1;
  }
}
