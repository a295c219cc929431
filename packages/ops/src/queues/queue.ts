import { ALERTS_QUEUE, CarillonError } from "@carillon/core";
import { assertName } from "@carillon/core/internal";
import type { Store } from "@carillon/store";

/** Names of the queues that have tasks or runs; for an owner, of those that hold its tasks. */
export function namesOf({ store, owner }: { store: Store; owner: string | undefined }): Promise<string[]> {
  return owner === undefined ? store.registry.queues() : store.tasks.queuesOf(owner);
}

/** @throws `INVALID_NAME`, `QUEUE_NOT_FOUND`; `FORBIDDEN` for the queue of alerts */
export async function assertPausable(store: Store, queue: string): Promise<void> {
  assertName(queue, "queue");
  if (queue === ALERTS_QUEUE)
    throw new CarillonError("FORBIDDEN", "alerts go through this queue; it cannot be paused.", {
      field: "queue",
      remedy: "To stop webhooks, take the alerts off their tasks, or stop the worker that has alertWebhook.",
    });
  await assertQueue(store, queue);
}

/** @throws `QUEUE_NOT_FOUND` */
export async function assertQueue({ registry }: Store, queue: string): Promise<void> {
  if (!(await registry.has(queue)))
    throw new CarillonError("QUEUE_NOT_FOUND", `no queue ${queue} has tasks.`);
}
