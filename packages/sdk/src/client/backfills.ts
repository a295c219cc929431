import { CarillonError, type TaskRef } from "@carillon/core";
import {
  assertName,
  assertOptions,
  durationOption,
  isToken,
  MAX_DURATION,
  quote,
} from "@carillon/core/internal";
import { type Backfill, newToken } from "@carillon/store";
import {
  type BackfillAllOptions,
  type BackfillAllResult,
  backfillAll,
  isBatch,
  rangeOf,
  timesOf,
} from "./backfill-all.js";
import type { BackfillOptions } from "./backfill-times.js";
import type { BulkFilter } from "./bulk.js";
import { notFound, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";
import type { AuthorOptions } from "./types.js";

/** The answer of `client.backfills.start`. */
export interface StartBackfillResult {
  /** Undefined for a dry run. */
  readonly id: string | undefined;
  /** Occurrences in the range. */
  readonly total: number;
}

/** Selects backfills to list. */
export interface BackfillListOptions {
  readonly queue?: string | undefined;
  readonly owner?: string | undefined;
  readonly state?: Backfill["state"] | undefined;
  /** Those that one call of `startAll` or `client.bulk.resume` started. */
  readonly batch?: string | undefined;
  /** At most this many; default 100, at most 1,000. */
  readonly limit?: number | undefined;
}

const STATES: readonly unknown[] = ["running", "done", "cancelled"] satisfies Backfill["state"][];

/** Runs of past occurrences, at `client.backfills`. */
export class Backfills {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Runs past occurrences of a task again, or for the first time, under its overlap policy or another. A node does it.
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`
   */
  async start(ref: TaskRef, options: BackfillOptions): Promise<StartBackfillResult> {
    assertOptions(options, ["from", "to", "dryRun", "overlap", "every", "only", "by"]);
    const author = this.#scope.author(options.by);
    const by = author || this.#scope.actor;
    const given = rangeOf(options);
    const every = durationOption(options.every, "every", 1, MAX_DURATION) ?? 0;
    const { store } = this.#scope;
    const name = await this.#scope.locate(ref);
    await store.calendars.refresh();
    const [now, stored] = await Promise.all([store.tasks.time(name.queue), store.tasks.get(name)]);
    if (!stored) throw notFound(name);
    const { ranges, total } = await timesOf(this.#scope, stored, { ...given, now }, new TimeSlice());
    const { from, to, overlap, only } = given;
    if (options.dryRun || total === 0) return { id: undefined, total };
    const id = newToken();
    await store.backfills.put({
      ...{ id, task: name, taskCreated: stored.created },
      ...{ from, to, at: from - 1, total, every, overlap, by },
      ...(only && { ranges }),
    });
    this.#scope.log("backfill", name, author, { details: { backfill: id, from, to, total, overlap, only } });
    return { id, total };
  }

  /**
   * Backfills past occurrences of all tasks that match, evenly spread: `perMinute` in all. Each task has a backfill of its own, of this
   * `batch`. Without `perMinute` it only counts, as with `dryRun`.
   *
   * @throws `INVALID_OPTION`, also for more than 10,000 tasks or 1,000,000 occurrences
   */
  async startAll(filter: BulkFilter, options: BackfillAllOptions): Promise<BackfillAllResult> {
    return backfillAll(this.#scope, filter, options);
  }

  /** Backfills of the last 7 days, newest first. @throws `INVALID_OPTION`, `INVALID_NAME` */
  async list(options: BackfillListOptions = {}): Promise<Backfill[]> {
    assertOptions(options, ["queue", "owner", "state", "batch", "limit"]);
    const limit = wholeNumber(options.limit ?? 100, "limit", 1, 1_000);
    const { owner, state, batch } = options;
    if (owner !== undefined) assertName(owner, "owner");
    if (state !== undefined && !STATES.includes(state))
      throw fault("state", `got ${quote(state)}.`, `Use one of ${STATES.join(", ")}.`);
    const bound = this.#scope.owner;
    if (bound !== undefined && owner !== undefined && owner !== bound) return [];
    const matches = (one: Backfill) =>
      (state === undefined || one.state === state) &&
      (batch === undefined || one.batch === batch) &&
      [bound, owner].every((name) => name === undefined || one.task.owner === name);
    let newest: Backfill[] = [];
    for (const queue of await this.#scope.queuesOf(options.queue)) {
      for await (const page of this.#scope.store.backfills.all(queue)) {
        newest = [...newest, ...page.filter(matches)].sort(byAge).slice(0, limit);
      }
    }
    return newest;
  }

  /** The progress of a backfill. @throws `BACKFILL_NOT_FOUND` */
  async get(id: string): Promise<Backfill> {
    const { store, owner } = this.#scope;
    const queues = isToken(id) ? await this.#scope.queues() : [];
    const found = await Promise.all(queues.map((queue) => store.backfills.get(queue, id)));
    const backfill = found.find((one) => one !== undefined);
    if (backfill && (owner === undefined || backfill.task.owner === owner)) return backfill;
    throw backfillNotFound(id);
  }

  /**
   * Stops a backfill, or all of a batch; what it has enqueued goes on. Returns whether it was running.
   *
   * @throws `BACKFILL_NOT_FOUND`
   */
  async cancel(id: string, options: AuthorOptions = {}): Promise<boolean> {
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    if (isBatch(id)) return this.#cancelBatch(id, by);
    const { task } = await this.get(id);
    const ended = await this.#scope.store.backfills.end(task.queue, id, "cancelled");
    if (ended) this.#scope.log("backfill.cancel", task, by, { details: { backfill: id } });
    return ended;
  }

  async #cancelBatch(batch: string, by: string): Promise<boolean> {
    const { store, owner } = this.#scope;
    let [found, count] = [false, 0];
    for (const queue of await this.#scope.queues()) {
      for await (const page of store.backfills.all(queue)) {
        const its = page.filter((one) => one.batch === batch && [undefined, one.task.owner].includes(owner));
        found ||= its.length > 0;
        const running = its.filter(({ state }) => state === "running");
        const ended = await Promise.all(running.map(({ id }) => store.backfills.end(queue, id, "cancelled")));
        count += ended.filter(Boolean).length;
      }
    }
    if (!found) throw backfillNotFound(batch);
    if (count > 0) this.#scope.log("backfill.cancel", { owner }, by, { count, details: { batch } });
    return count > 0;
  }
}

function byAge(a: Backfill, b: Backfill): number {
  return b.created - a.created || (a.id < b.id ? -1 : 1);
}

function fault(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}

function backfillNotFound(id: unknown): CarillonError {
  return new CarillonError("BACKFILL_NOT_FOUND", `there is no backfill ${quote(id)}.`, {
    remedy: "It may have ended more than 7 days ago, or its task was deleted.",
  });
}
