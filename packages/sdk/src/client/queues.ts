import { ALERTS_QUEUE, CarillonError, type Outcome } from "@carillon/core";
import { assertName, assertOptions, gapText, pauseText } from "@carillon/core/internal";
import { Coverage, type QueuePause, type QueueState, type Store } from "@carillon/store";
import { type Holds, holdsOf } from "./holds.js";
import { shortText, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import type { AuthorOptions, DeleteOptions } from "./types.js";

/** A queue: its tasks, its waiting jobs and its workers. */
export interface QueueView extends Partial<Omit<QueueState, "paused" | "limited">> {
  readonly name: string;
  /** Number of tasks; for a bound client, those of its owner. */
  readonly tasks: number;
  /**
   * Workers take no jobs. Since when (UTC ms), by whom and why, as far as the pause recorded it: one by plain BullMQ
   * does not. Absent: it is not paused.
   */
  readonly paused?: QueuePause | undefined;
  /** BullMQ workers that are connected, plain ones included. Undefined: Redis does not say. */
  readonly workers: number | undefined;
  /** Number of runs by outcome; see `client.queues.outcomes`. */
  readonly outcomes?: Readonly<Record<Outcome, number>> | undefined;
}

const ANY_OWNER = "*";

/** The queues of a namespace, at `client.queues`. */
export class Queues {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * The queues that have tasks or runs: whether each is paused, its jobs, and how many workers it has. A bound client
   * gets those that hold tasks of its owner, without the jobs and runs of all owners. Counting workers takes a `CLIENT
   * LIST`; for names alone use `names`.
   */
  async list(): Promise<QueueView[]> {
    const { store, owner } = this.#scope;
    const names = await this.names();
    const workers = await store.queues.workers(names);
    return Promise.all(
      names.map(async (name): Promise<QueueView> => {
        const [tasks, state, outcomes] = await Promise.all([
          store.tasks.count(name, owner),
          store.queues.state(name),
          owner === undefined ? store.runs.outcomes(name) : undefined,
        ]);
        const { paused, limited: _, ...jobs } = state ?? ({} as Partial<QueueState>);
        return {
          name,
          tasks,
          ...(paused && { paused }),
          workers: workers?.get(name),
          ...(owner === undefined && { ...jobs, outcomes }),
        };
      }),
    );
  }

  /** The names of the queues that `list` returns. */
  async names(): Promise<string[]> {
    const { store, owner } = this.#scope;
    return owner === undefined ? store.registry.queues() : store.tasks.queuesOf(owner);
  }

  /**
   * The namespaces of this Redis that have queues, this one included. Reads the names of at most a million keys of each master.
   *
   * @throws `FORBIDDEN` for a bound client; `REDIS_AUTH` for a user that may not SCAN, as those of the shipped ACL
   */
  async namespaces(): Promise<string[]> {
    this.#scope.assertUnbound();
    return this.#scope.store.namespaces();
  }

  /**
   * Pauses a queue: its workers take no more jobs, and finish those they have. Scheduling goes on: jobs wait, and a task whose overlap policy
   * is `skip` skips occurrences that come due while its run waits. Returns false if the queue is paused already: the first note and name stay.
   *
   * @throws `INVALID_NAME`, `INVALID_OPTION`, `QUEUE_NOT_FOUND`; `FORBIDDEN` for a bound client, and for the queue of alerts, `carillon-alerts`
   */
  async pause(
    queue: string,
    options: { note?: string | undefined; by?: string | undefined } = {},
  ): Promise<boolean> {
    assertOptions(options, ["note", "by"]);
    const [by, note] = [this.#scope.author(options.by), shortText(options.note, "note")];
    await this.#assertPausable(queue);
    const paused = await this.#scope.store.queues.pause(queue, by, note);
    if (paused) this.#scope.log("queue.pause", { queue }, by, { details: { note: note || undefined } });
    return paused;
  }

  /**
   * Counts what a pause of the queue would hold, and pauses nothing: a dry run.
   *
   * @throws as `pause`, but for `INVALID_OPTION`
   */
  async previewPause(queue: string): Promise<Holds> {
    await this.#assertPausable(queue);
    return holdsOf(this.#scope, { queue });
  }

  /** @throws `INVALID_NAME`, `QUEUE_NOT_FOUND`, `FORBIDDEN` */
  async #assertPausable(queue: string): Promise<void> {
    this.#scope.assertUnbound();
    assertName(queue, "queue");
    if (queue === ALERTS_QUEUE) {
      throw new CarillonError("FORBIDDEN", "alerts go through this queue; it cannot be paused.", {
        field: "queue",
        remedy:
          "To stop webhooks, take the alerts off their tasks, or stop the worker that has alertWebhook.",
      });
    }
    if (!(await this.#scope.store.registry.has(queue))) throw queueNotFound(queue);
  }

  /**
   * Lets the workers of a queue take jobs again, no matter who paused it. Returns false if it was not paused.
   *
   * @throws `INVALID_NAME`, `QUEUE_NOT_FOUND`, `FORBIDDEN` for a bound client
   */
  async resume(queue: string, options: AuthorOptions = {}): Promise<boolean> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    const by = this.#scope.author(options.by);
    assertName(queue, "queue");
    const { store } = this.#scope;
    // A pause outlives the last task.
    const resumed = await store.queues.resume(queue);
    if (resumed) this.#scope.log("queue.resume", { queue }, by);
    else if (!(await store.registry.has(queue))) throw queueNotFound(queue);
    return resumed;
  }

  /**
   * Number of runs of one owner that may be queued or running in a queue at once, by owner. `*`: each owner without a limit of its own.
   *
   * @throws `INVALID_NAME`, `FORBIDDEN` for a bound client
   */
  async limits(queue: string): Promise<Record<string, number>> {
    this.#scope.assertUnbound();
    return this.#scope.store.queues.limits(assertName(queue, "queue"));
  }

  /**
   * Limits the runs that one owner may have queued or running in a queue at once. Occurrences above the limit wait, without delaying other
   * owners, until a run of that owner ends; their task's catch-up policy treats them as late. `enqueue` waits too;
   * `trigger` is refused with `OWNER_LIMIT`. Runs that were enqueued while the owner had no limit do not count. A limit that is raised or
   * removed takes effect within 30 s. Returns false if that changed nothing.
   *
   * @param owner `*`: each owner without a limit of its own
   * @param runs 1 to 100,000; null removes the limit
   * @throws `INVALID_NAME`, `INVALID_OPTION`, `QUEUE_NOT_FOUND`; `FORBIDDEN` for a bound client, and for the queue of alerts
   */
  async setLimit(
    queue: string,
    owner: string,
    runs: number | null,
    options: AuthorOptions = {},
  ): Promise<boolean> {
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    this.#scope.assertUnbound();
    assertName(queue, "queue");
    if (queue === ALERTS_QUEUE) {
      throw new CarillonError("FORBIDDEN", "alerts go through this queue; they are not limited.", {
        field: "queue",
        remedy: "Limit the queues of the tasks that raise them.",
      });
    }
    if (owner !== ANY_OWNER) assertName(owner, "owner");
    const limit = runs === null ? undefined : wholeNumber(runs, "runs", 1, 100_000);
    const { store } = this.#scope;
    // The limits of a queue may outlive its tasks.
    if (limit !== undefined && !(await store.registry.has(queue))) throw queueNotFound(queue);
    const changed = await store.queues.setLimit(queue, owner, limit);
    if (changed) this.#scope.log("queue.limit", { queue, owner }, by, { details: { runs } });
    return changed;
  }

  /**
   * Deletes a queue with its tasks and everything that BullMQ keeps of it. Returns the number of tasks it had. Stop its workers first.
   *
   * @throws `INVALID_NAME`, `FORBIDDEN` for a bound client
   */
  async delete(queue: string, options: DeleteOptions = {}): Promise<number> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    const by = this.#scope.author(options.by);
    const count = await this.#scope.store.deleteQueue(assertName(queue, "queue"));
    this.#scope.log("queue.delete", { queue }, by, { count });
    return count;
  }

  /**
   * Number of runs of a queue by outcome, over all processes. Runs of deleted tasks count too; a run that ended, was retried from outside and
   * ended again counts twice. For metrics: the numbers only grow, and restart at 0 once the queue was empty.
   *
   * @throws `INVALID_NAME`, `FORBIDDEN` for a bound client
   */
  async outcomes(queue: string): Promise<Record<Outcome, number>> {
    this.#scope.assertUnbound();
    return this.#scope.store.runs.outcomes(assertName(queue, "queue"));
  }
}

function queueNotFound(queue: string): CarillonError {
  return new CarillonError("QUEUE_NOT_FOUND", `no queue ${queue} has tasks.`);
}

/** Reason why no worker takes a job of this type that waits in the queue. Undefined: one may, or nothing is known. */
export async function holdOf(store: Store, queue: string, type: string): Promise<string | undefined> {
  const state = await store.queues.state(queue);
  if (state?.paused) return `the queue is paused${pauseText(state.paused)}`;
  const [gap] = (await new Coverage(store).gaps([{ queue, type }])).values();
  return gap && gapText(gap);
}
