import { CarillonError, type Run, type TaskRef } from "@carillon/core";
import {
  assertName,
  assertOneOf,
  assertOptions,
  durationOption,
  invalid,
  MAX_DURATION,
  quote,
} from "@carillon/core/internal";
import type { Attempt, Skip } from "@carillon/store";
import { shortText, wholeNumber } from "./input.js";
import { type JournalFilter, type JournalPage, journal, journalWindow } from "./journal.js";
import { type RunningFilter, type RunningRun, running } from "./running.js";
import type { Scope } from "./scope.js";
import { statsView, type TaskStats } from "./stats.js";

/** A run with the workers and the output of its attempts. */
export interface RunDetails extends Run {
  readonly attemptList: readonly Attempt[];
  /** Cut if it was longer than a worker keeps. */
  readonly output: readonly { readonly attempt: number; readonly text: string; readonly cut: boolean }[];
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
  async list(
    ref: TaskRef,
    options: { limit?: number | undefined; offset?: number | undefined } = {},
  ): Promise<Run[]> {
    assertOptions(options, ["limit", "offset"]);
    const limit = wholeNumber(options.limit ?? 20, "limit", 1, 1_000);
    const offset = wholeNumber(options.offset ?? 0, "offset", 0, 1_000_000);
    return this.#scope.store.runs.list(await this.#scope.locate(ref), limit, offset);
  }

  /**
   * The runs that workers have under way now, of all tasks, longest first, each with the usual duration of its task. Includes runs that are
   * `terminating`, and fan-outs whose items are not done (`queued`). A run whose worker died stays listed until BullMQ notices.
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`, `INVALID_NAME`
   */
  async running(filter: RunningFilter = {}): Promise<RunningRun[]> {
    assertOptions(filter, ["task", "queue", "owner", "text", "limit"]);
    const text = shortText(filter.text, "text") || undefined;
    for (const field of ["queue", "owner"] as const)
      if (filter[field] !== undefined) assertName(filter[field], field);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    const { store } = this.#scope;
    const { owner } = this.#scope.bind({ owner: filter.owner });
    const task = filter.task === undefined ? undefined : await this.#scope.locate(filter.task);
    const queues = await this.#scope.queuesOf(filter.queue ?? task?.queue);
    return running({ store, queues }, { task, owner, text }, limit);
  }

  /** One run, with the workers and the output of its attempts. @throws `RUN_NOT_FOUND` */
  async get(id: string): Promise<RunDetails> {
    const run = await findRun(this.#scope, id);
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
    const { task } = await findRun(this.#scope, id);
    const answer = await this.#scope.store.runs.cancel(task, id, by || this.#scope.actor);
    if (answer === "GONE") throw notFound(id);
    if (answer === "FINAL") throw new CarillonError("CONFLICT", `run ${id} has already ended.`);
    if (answer === "OK") this.#scope.log("cancel", task, by, { details: { run: id } });
    return answer === "OK";
  }

  /**
   * Final runs of all queues by their end, newest first: of a task, with one outcome or several, by a node, in a range of time.
   *
   * @throws `INVALID_OPTION`, `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`
   */
  async journal(filter: JournalFilter & { task?: TaskRef | undefined } = {}): Promise<JournalPage> {
    assertOptions(filter, [
      ...(["task", "queue", "owner", "text", "took", "sort", "outcome", "node"] as const),
      ...(["from", "to", "limit", "cursor"] as const),
    ]);
    const { text, took, sort } = filter;
    shortText(text, "text");
    assertOneOf(sort, "sort", ["end", "took"]);
    if (sort === "took" && filter.cursor !== undefined)
      throw invalid("cursor", "given with sort took.", "Give a higher limit: the slowest are one page.");
    const least = took === undefined ? 0 : durationOption(took, "took", 0, MAX_DURATION);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    if (filter.queue !== undefined) assertName(filter.queue, "queue");
    const window = journalWindow(filter);
    const { owner } = this.#scope.bind({ owner: filter.owner });
    const task = filter.task === undefined ? undefined : await this.#scope.locate(filter.task);
    return journal(this.#scope.store, { ...filter, limit, task, owner, least }, window);
  }

  /** The occurrences of a task that were not enqueued, and why; newest first. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async skips(ref: TaskRef): Promise<Skip[]> {
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
}

/** @throws `RUN_NOT_FOUND` */
export async function findRun(scope: Scope, id: string): Promise<Run> {
  if (typeof id !== "string" || !/^[A-Za-z0-9._-]{1,128}@[a-z0-9-]+\.[A-Za-z0-9.]+$/.test(id))
    throw notFound(id);
  const { store, owner } = scope;
  const queues = await scope.queues();
  const found = await Promise.all(queues.map((queue) => store.runs.get(queue, id)));
  const run = found.find((one) => one !== undefined);
  if (!run || (owner !== undefined && run.task.owner !== owner)) throw notFound(id);
  return run;
}

function notFound(id: unknown): CarillonError {
  return new CarillonError("RUN_NOT_FOUND", `no run has the id ${quote(id)}.`, {
    remedy: "Records are deleted with their task or after its `retention`. To start a task, use `trigger`.",
  });
}
