import { createHash } from "node:crypto";
import {
  CarillonError,
  ITEM_STATES,
  type ItemState,
  type Run,
  type RunItem,
  type TaskRef,
} from "@carillon/core";
import { assertName, assertOptions, quote, runId } from "@carillon/core/internal";
import type { Attempt, LedgerEntry } from "@carillon/store";
import { wholeNumber } from "./input.js";
import { type JournalFilter, type JournalPage, journal, journalWindow } from "./journal.js";
import { assertRunning, type RunningFilter, type RunningRun, running } from "./running.js";
import type { Scope } from "./scope.js";
import { type StatsPage, statsView, type TaskStats } from "./stats.js";
import { type RunSummary, type SummaryOptions, summarize } from "./summary.js";
import { listStats } from "./task-reader.js";
import type { AuthorOptions, ListOptions } from "./types.js";

/** A run with the workers and the output of its attempts. */
export interface RunDetails extends Run {
  readonly attemptList: readonly Attempt[];
  /** Cut if it was longer than a worker keeps. */
  readonly output: readonly { readonly attempt: number; readonly text: string; readonly cut: boolean }[];
}

/** Items of a run to list. */
export interface ItemFilter {
  /** One status or several; default all. */
  readonly status?: ItemState | readonly ItemState[] | undefined;
  /** At most this many; default 100, at most 1,000. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

export interface ItemPage {
  readonly items: RunItem[];
  /** Gives the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/** The runs of tasks and their records, at `client.runs`. */
export class Runs {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * A task's runs, newest first; those that are not final before the others.
   *
   * @param options `limit` default 20, at most 1,000; `offset` default 0
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`
   */
  list(ref: TaskRef, options?: { limit?: number | undefined; offset?: number | undefined }): Promise<Run[]>;
  /**
   * The runs that workers have under way now, of all tasks, longest first, each with the usual duration of its task. A run whose worker died stays listed
   * until BullMQ notices.
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`, `INVALID_NAME`
   */
  list(filter: RunningFilter): Promise<RunningRun[]>;
  async list(
    ref: TaskRef | RunningFilter,
    options: { limit?: number | undefined; offset?: number | undefined } = {},
  ): Promise<Run[]> {
    if (typeof ref === "object" && ref !== null && "state" in ref) return this.#running(ref);
    assertOptions(options, ["limit", "offset"]);
    const limit = wholeNumber(options.limit ?? 20, "limit", 1, 1_000);
    const offset = wholeNumber(options.offset ?? 0, "offset", 0, 1_000_000);
    return this.#scope.store.runs.list(await this.#scope.locate(ref), limit, offset);
  }

  /** One run, with the workers and the output of its attempts. @throws `RUN_NOT_FOUND` */
  async get(id: string): Promise<RunDetails> {
    const run = await this.#find(id);
    const { runs } = this.#scope.store;
    const [attemptList, output] = await Promise.all([
      runs.attempts(run.task.queue, id),
      runs.output(run.task.queue, id),
    ]);
    return { ...run, attemptList, output };
  }

  /**
   * Requests the end of a run, wherever in the cluster it is: a queued run never starts, a running one gets its signal aborted. Returns
   * false if its end was requested before.
   *
   * @throws `RUN_NOT_FOUND`, `CONFLICT` if it is over
   */
  async cancel(id: string, options: { by?: string | undefined } = {}): Promise<boolean> {
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    const { task } = await this.#find(id);
    const answer = await this.#scope.store.runs.cancel(task, id, by || this.#scope.actor);
    if (answer === "GONE") throw notFound(id);
    if (answer === "FINAL") throw new CarillonError("CONFLICT", `run ${id} has already ended.`);
    if (answer === "OK") this.#scope.log("cancel", task, by, { details: { run: id } });
    return answer === "OK";
  }

  /**
   * The items of a fan-out by index, each with its data, times, status, attempts, worker, output and error. Empty if the run has none. They are
   * kept as long as the run's record.
   *
   * @throws `RUN_NOT_FOUND`, `INVALID_OPTION`
   */
  async items(id: string, filter: ItemFilter = {}): Promise<ItemPage> {
    assertOptions(filter, ["status", "limit", "cursor"]);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    const from = itemCursor(filter.cursor);
    const asked = itemStates(filter.status);
    const run = await this.#find(id);
    // An unfinished item of a run that has ended is stored with its last status.
    const shown = (status: ItemState) =>
      run.state === "final" && status === "waiting" ? "cancelled" : status;
    const { items, next } = await this.#scope.store.items.page(
      run.task.queue,
      id,
      (status) => asked.includes(shown(status)),
      { from, limit },
    );
    const cursor = next === undefined ? undefined : String(next);
    return { items: items.map((item) => ({ ...item, status: shown(item.status) })), cursor };
  }

  /**
   * Does the failed items of a run again, in a new run for the same occurrence: each has its index, its data and its idempotency key again. A
   * second call for the same run starts nothing and returns the same new run, unless that one ended before it had items. If items fail
   * again, retry those of the new run.
   *
   * @throws `RUN_NOT_FOUND`; `CONFLICT` if the run is not over, has no items or none that failed, or its task changed its type;
   * `SKIPPED_OVERLAP` if another run of the task is open and its policy is not `allow`, or a retry of this one waits
   */
  async retryItems(id: string, options: AuthorOptions = {}): Promise<{ run: string; enqueued: number }> {
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    const run = await this.#find(id);
    if (run.state !== "final") throw refused(id, "is not over", "Wait for its end, or cancel it.");
    const { store } = this.#scope;
    const { queue } = run.task;
    if ((await store.items.count(queue, id)) === 0)
      throw refused(id, "has no items", "Only runs of a fan-out have items. Trigger its task instead.");
    const failed = await store.items.page(queue, id, (status) => status === "failed", { from: 0, limit: 1 });
    if (failed.items.length === 0) throw refused(id, "has no failed items", "There is nothing to retry.");
    const task = await store.tasks.get(run.task);
    if (task && "definition" in task && task.definition.type !== run.type)
      throw refused(id, `is of type ${run.type}, and its task no longer`, "Trigger its task instead.");
    for (let nth = 1; ; nth++) {
      const token = createHash("sha256").update(`${id} ${nth}`).digest("hex").slice(0, 16);
      const before = await store.runs.get(queue, runId(run.task.id, run.nominal, token));
      if (!before) {
        const retried = await store.claims.retryItems(run, { token, node: this.#scope.actor, name: by });
        this.#scope.log("retry", run.task, by, { details: { run: id, as: retried.run } });
        return retried;
      }
      const left = before.state !== "final" || (await store.items.count(queue, before.id)) > 0;
      if (left) return { run: before.id, enqueued: before.enqueued };
    }
  }

  /**
   * Final runs of all queues by their end, newest first: of a task, with one outcome or several, by a node, in a range of time.
   *
   * @throws `INVALID_OPTION`, `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`
   */
  async journal(filter: JournalFilter & { task?: TaskRef | undefined } = {}): Promise<JournalPage> {
    assertOptions(filter, ["task", "queue", "outcome", "node", "from", "to", "limit", "cursor"]);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    if (filter.queue !== undefined) assertName(filter.queue, "queue");
    const window = journalWindow(filter);
    const { store, owner } = this.#scope;
    const task = filter.task === undefined ? undefined : await this.#scope.locate(filter.task);
    return journal(store, { ...filter, limit, task, owner }, window);
  }

  /**
   * The runs that ended in the last hour, or in another recent time: the number with each outcome, and how late they were. At most the newest
   * 1,000 are read, whatever their number.
   *
   * @throws `INVALID_OPTION`
   */
  async summary(options: SummaryOptions = {}): Promise<RunSummary> {
    return summarize(this.#scope, options);
  }

  /** The occurrences of a task that were not enqueued, and why; newest first. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async ledger(ref: TaskRef): Promise<LedgerEntry[]> {
    return this.#scope.store.runs.ledger(await this.#scope.locate(ref));
  }

  /** The statistics of a task's runs. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async stats(ref: TaskRef): Promise<TaskStats> {
    const name = await this.#scope.locate(ref);
    const { runs } = this.#scope.store;
    const [stored, open] = await Promise.all([runs.stats(name), runs.open(name)]);
    const found = await runs.many(name.queue, open);
    const running = found.filter(({ state }) => state === "running" || state === "terminating").length;
    const [last] = stored.lastRun ? await runs.delays(name.queue, [stored.lastRun]) : [];
    return statsView(stored, open.length, running, last);
  }

  async #running(filter: RunningFilter): Promise<RunningRun[]> {
    assertOptions(filter, ["state", "task", "queue", "limit"]);
    assertRunning(filter);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    const { store, owner } = this.#scope;
    const task = filter.task === undefined ? undefined : await this.#scope.locate(filter.task);
    const queues = await this.#scope.queuesOf(filter.queue ?? task?.queue);
    return running({ store, owner, queues }, task, limit);
  }

  /**
   * The statistics of all tasks, or of those that match: a page in the order of queue, owner, id, or by next time. A page takes a few
   * round trips for each queue that it reads, however many tasks it has.
   *
   * @example
   * const { tasks } = await client.runs.statsOfAll({ outcome: ["failed", "timed-out", "crashed", "lost"] });
   * @throws `INVALID_OPTION`, `INVALID_NAME`
   */
  async statsOfAll(options: ListOptions = {}): Promise<StatsPage> {
    return listStats(this.#scope, options);
  }

  async #find(id: string): Promise<Run> {
    if (typeof id !== "string" || !/^[A-Za-z0-9._-]{1,128}@[a-z0-9-]+\.[A-Za-z0-9.]+$/.test(id))
      throw notFound(id);
    const { store, owner } = this.#scope;
    const queues = await this.#scope.queues();
    const found = await Promise.all(queues.map((queue) => store.runs.get(queue, id)));
    const run = found.find((one) => one !== undefined);
    if (!run || (owner !== undefined && run.task.owner !== owner)) throw notFound(id);
    return run;
  }
}

function notFound(id: unknown): CarillonError {
  return new CarillonError("RUN_NOT_FOUND", `no run has the id ${quote(id)}.`, {
    remedy: "Records are deleted with their task or after its `retention`. To start a task, use `trigger`.",
  });
}

function refused(id: string, what: string, remedy: string): CarillonError {
  return new CarillonError("CONFLICT", `run ${id} ${what}.`, { remedy });
}

/** @throws `INVALID_OPTION` */
function itemCursor(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (typeof cursor === "string" && /^\d{1,5}$/.test(cursor)) return Number(cursor);
  throw new CarillonError("INVALID_OPTION", `got ${quote(cursor)}.`, {
    field: "cursor",
    remedy: "Give the cursor of the previous page.",
  });
}

/** @throws `INVALID_OPTION` */
function itemStates(status: ItemFilter["status"] = ITEM_STATES): readonly ItemState[] {
  const asked = Array.isArray(status) ? (status as readonly ItemState[]) : [status as ItemState];
  const unknown = asked.find((one) => !ITEM_STATES.includes(one));
  if (unknown === undefined && asked.length > 0) return asked;
  throw new CarillonError("INVALID_OPTION", asked.length > 0 ? `got ${quote(unknown)}.` : "an empty list.", {
    field: "status",
    remedy: `Use one of ${ITEM_STATES.join(", ")}, or several.`,
  });
}
