import type { TriggerOptions } from "@carillon/core";
import type { BulkFilter, BulkOptions, BulkResult, ResumeFilter } from "./bulk.js";
import { deleteAll, pauseAll, type TagChange, tagAll, triggerAll } from "./bulk-actions.js";
import { type ResumeAllOptions, type ResumeAllResult, resumeAll } from "./resume-all.js";
import { type ResumePlan, resumePlan } from "./resume-plan.js";
import type { Scope } from "./scope.js";
import type { TaskWriter } from "./task-writer.js";
import type { AuthorOptions, DeleteOptions, PauseOptions } from "./types.js";

/**
 * Calls that change many tasks, at `client.bulk`: those that a filter selects, or a list of names. Each says how many
 * it changed, and which it could not; with `dryRun` how many it would change. A filter without any condition is
 * refused.
 */
export class BulkCalls {
  readonly #scope: Scope;
  readonly #writer: TaskWriter;

  /** @internal */
  constructor(scope: Scope, writer: TaskWriter) {
    this.#scope = scope;
    this.#writer = writer;
  }

  /**
   * Deletes all tasks that match, with their records; those of an owner with the deliveries of its alerts, unless `deliveries` is false.
   *
   * @throws `INVALID_OPTION`
   */
  async delete(filter: BulkFilter, options: BulkOptions & DeleteOptions = {}): Promise<BulkResult> {
    return deleteAll(this.#scope, filter, options);
  }

  /** Pauses all scheduled tasks that match. @throws `INVALID_OPTION` */
  async pause(
    filter: BulkFilter,
    options: BulkOptions & Omit<PauseOptions, "cancelQueued"> = {},
  ): Promise<BulkResult> {
    return pauseAll(this.#scope, filter, options);
  }

  /**
   * Resumes all paused tasks that match; with `note` or `pausedBy`, only those that were paused with this note or by this
   * name, so that nobody else's pause is undone. `from: "latest"` and `"all"` run what the tasks owe as backfills, at a pace.
   *
   * @throws `INVALID_OPTION`
   */
  async resume(filter: ResumeFilter, options: BulkOptions & ResumeAllOptions = {}): Promise<ResumeAllResult> {
    return resumeAll(this.#scope, filter, options);
  }

  /**
   * The occurrences that the paused tasks that match owe, and how many each choice of `resume` would start. Counts at most 250,000 times of
   * schedules; beyond, counts are lower bounds (`exact: false`).
   *
   * @throws `INVALID_OPTION`
   */
  async resumePlan(filter: ResumeFilter): Promise<ResumePlan> {
    return resumePlan(this.#scope, filter);
  }

  /**
   * Runs all tasks that match now, at once. Those that their overlap policy, a freeze or a limit holds back are `refused`, each by itself;
   * those that were triggered with the same `key` before are not counted.
   *
   * @throws `INVALID_OPTION`, `INVALID_NAME` for the key
   */
  async trigger(
    filter: BulkFilter,
    options: BulkOptions & Omit<TriggerOptions, "payload"> = {},
  ): Promise<BulkResult> {
    return triggerAll(this.#scope, filter, options);
  }

  /**
   * Adds tags to all tasks that match, and removes others; tasks that have them so already are not counted.
   *
   * @example
   * await client.bulk.tag({ owner: "acme" }, { add: ["billing"], remove: ["trial"] }, { dryRun: true });
   * @throws `INVALID_OPTION`, `INVALID_NAME`
   */
  async tag(
    filter: BulkFilter,
    change: TagChange,
    options: BulkOptions & AuthorOptions = {},
  ): Promise<BulkResult> {
    return tagAll(this.#scope, this.#writer, filter, change, options);
  }
}
