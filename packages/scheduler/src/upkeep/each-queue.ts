import type { Store } from "@carillon/store";

/** Time-to-live of the mutex for a repair of a queue, in ms. Two nodes that repair at once only do the work twice. */
export const REPAIR_TTL = 60_000;

/** Does the work for one queue after the other; stops at a failure if the connection is lost. @returns what failed */
export async function eachQueue(
  store: Store,
  queues: readonly string[],
  work: (queue: string) => Promise<unknown>,
): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const queue of queues) {
    await work(queue).catch((error: unknown) => failures.push(error));
    if (failures.length > 0 && !store.ready) break;
  }
  return failures;
}
