import { bullPrefix, isUnknown, type RedisClient, redisError, type Store } from "@carillon/store";
import { bull } from "@carillon/store/internal";
import type { Job, Queue } from "bullmq";
import { pauseAfter } from "./pause-after.js";

/** Attempts of a call while Redis is unavailable: about 20 s. */
const TRIES = 10;
/** Progress is written no more often, in ms. */
const PROGRESS_EVERY = 1_000;

export async function countItems(run: Job): Promise<{ succeeded: number; failed: number; left: number }> {
  const counts = await run.getDependenciesCount({ processed: true, ignored: true, unprocessed: true });
  const { processed: succeeded = 0, ignored: failed = 0, unprocessed: left = 0 } = counts;
  return { succeeded, failed, left };
}

/** The progress of runs with items, which are BullMQ's children of the run's job. */
export class ItemQueues {
  readonly #queues = new Map<string, Queue>();
  /** Runs whose progress is to be written, by queue and run. */
  readonly #moved = new Map<string, [queue: string, run: string]>();
  #connection: RedisClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(private readonly store: Store) {}

  #queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (!queue) {
      if (!this.#connection) {
        this.#connection = this.store.connect("safe");
        this.#connection.on("error", () => {});
      }
      queue = new (bull().Queue)(name, {
        connection: this.#connection,
        prefix: bullPrefix(this.store.namespace, name),
        skipMetasUpdate: true,
        skipVersionCheck: true,
      });
      queue.on("error", () => {});
      this.#queues.set(name, queue);
    }
    return queue;
  }

  /** Repeats an idempotent call until Redis has answered, or for about 20 s. */
  async patiently<T>(queue: string, act: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await act();
      } catch (error) {
        if (tries === TRIES || !isUnknown(redisError(error))) throw error;
        this.#drop(queue);
        await pauseAfter(tries);
      }
    }
  }

  /** BullMQ does not recover a queue whose first commands failed. */
  #drop(queue: string): void {
    this.#queues
      .get(queue)
      ?.close()
      .catch(() => {});
    this.#queues.delete(queue);
  }

  /** An item ended: its run's progress is written soon. */
  moved(queue: string, run: string): void {
    // A stop no longer waits for this item: writing would open a connection that is never closed.
    if (this.#closed) return;
    this.#moved.set(`${queue} ${run}`, [queue, run]);
    this.#timer ??= setTimeout(() => this.#writeProgress(), PROGRESS_EVERY).unref();
  }

  #writeProgress(): void {
    this.#timer = undefined;
    const moved = [...this.#moved.values()];
    this.#moved.clear();
    for (const [queue, run] of moved) {
      this.#writeProgressOf(queue, run).catch((error: unknown) => {
        // Progress is only displayed, and the next item's end writes it again. The run may have been deleted.
        if (isUnknown(redisError(error))) this.#drop(queue);
      });
    }
  }

  async #writeProgressOf(queue: string, run: string): Promise<void> {
    const { succeeded, failed, left } = await countItems(this.#job(queue, run));
    // The run wrote its final progress itself.
    if (left === 0) return;
    const progress = { done: succeeded + failed, failed, total: succeeded + failed + left };
    await this.#queue(queue).updateJobProgress(run, progress);
  }

  #job(queue: string, run: string): Job {
    return new (bull().Job)(this.#queue(queue), "", {}, {}, run);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#queues.clear();
    this.#connection?.disconnect();
  }
}
