import { setTimeout as pause } from "node:timers/promises";
import type { TurnWorker } from "@carillon/store";

const LOOK_EVERY = 200;
/** A close is abandoned after this number of checks without an active job: 3 s. */
const QUIET_LOOKS = 15;
/**
 * Or after this number of checks while jobs wait for a lost Redis: 6 s, longer than any call of ours waits for the
 * connection.
 */
const STRANDED_LOOKS = 30;

export interface Closing {
  /** Whether any job is held: its handler runs, or its end is being reported. */
  busy(): boolean;
  /** Whether no handler runs, and the remaining reports cannot be sent because Redis cannot be reached. */
  stranded(): boolean;
}

/**
 * Closes BullMQ's worker. BullMQ's own close can wait for ever on a lost connection, and so can a job that is to be
 * handed back. When no handler is running, there is nothing left to wait for: a job without a report returns when its
 * lock has expired.
 */
export async function closeWorker(worker: TurnWorker, { busy, stranded }: Closing): Promise<void> {
  const closed = worker.close().catch(() => {});
  let done = false;
  void closed.then(() => {
    done = true;
  });
  let [quiet, lost] = [0, 0];
  while (!done && quiet < QUIET_LOOKS && lost < STRANDED_LOOKS) {
    await Promise.race([closed, pause(LOOK_EVERY, undefined, { ref: false })]);
    quiet = busy() ? 0 : quiet + 1;
    lost = stranded() ? lost + 1 : 0;
  }
  if (!done) await worker.abandon();
}
