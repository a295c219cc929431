import { randomBytes } from "node:crypto";
import { CarillonError, type Duration, type OverlapPolicy, type TaskRef } from "@carillon/core";
import { assertOptions, assertOverlap, durationOption, MAX_DURATION, quote } from "@carillon/core/internal";
import type { Backfill } from "@carillon/store";
import { instant } from "../instant.js";
import { notFound } from "./input.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";
import type { AuthorOptions } from "./types.js";

export interface BackfillOptions {
  /** The nominal times, both included: ISO 8601, a Date or epoch ms. Neither may be in the future. */
  readonly from: string | number | Date;
  readonly to: string | number | Date;
  /** Count only. */
  readonly dryRun?: boolean | undefined;
  /** Instead of the task's overlap policy. */
  readonly overlap?: OverlapPolicy | undefined;
  /** At most one occurrence in this time, `10s`; default: as fast as they can be. */
  readonly every?: Duration | undefined;
  /** The name to record as the requester; default: this client's. */
  readonly by?: string | undefined;
}

/** The answer of `client.backfills.start`. */
export interface StartBackfillResult {
  /** Undefined for a dry run. */
  readonly id: string | undefined;
  /** Occurrences in the range. */
  readonly total: number;
}

/** More would be a mistake more often than a wish. */
const MOST = 100_000;

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
    assertOptions(options, ["from", "to", "dryRun", "overlap", "every", "by"]);
    const author = this.#scope.author(options.by);
    const by = author || this.#scope.actor;
    const [from, to] = [instant(options.from, "from"), instant(options.to, "to")];
    if (from > to) throw fault("from", "after to.", "Give the earlier time first.");
    const { overlap } = options;
    assertOverlap(overlap);
    const every = durationOption(options.every, "every", 1, MAX_DURATION) ?? 0;
    const { store } = this.#scope;
    const name = await this.#scope.locate(ref);
    await store.calendars.refresh();
    const [now, stored] = await Promise.all([store.tasks.time(name.queue), store.tasks.get(name)]);
    if (!stored) throw notFound(name);
    if (to > now) throw fault("to", "in the future.", "A backfill is of times that are past.");
    const schedule = store.calendars.schedules.get(stored.definition);
    if (schedule.delay !== undefined) {
      throw fault("task", "its times follow from its runs.", "Trigger it instead.");
    }
    let total = 0;
    const slice = new TimeSlice();
    for (let at = schedule.next(from - 1); at !== undefined && at <= to; at = schedule.next(at)) {
      total += 1;
      if (total > MOST) throw fault("to", `more than ${MOST} occurrences.`, "Give a shorter range.");
      if (slice.took(0)) await slice.pass();
    }
    if (options.dryRun || total === 0) return { id: undefined, total };
    const id = randomBytes(8).toString("hex");
    await store.backfills.put({
      id,
      task: name,
      from,
      to,
      at: from - 1,
      total,
      enqueued: 0,
      skipped: 0,
      every,
      overlap,
      by,
    });
    this.#scope.log("backfill", name, author, { details: { backfill: id, from, to, total, overlap } });
    return { id, total };
  }

  /** The progress of a backfill. @throws `BACKFILL_NOT_FOUND` */
  async get(id: string): Promise<Backfill> {
    const { store, owner } = this.#scope;
    const queues = typeof id === "string" && /^[0-9a-f]{16}$/.test(id) ? await this.#scope.queues() : [];
    const found = await Promise.all(queues.map((queue) => store.backfills.get(queue, id)));
    const backfill = found.find((one) => one !== undefined);
    if (backfill && (owner === undefined || backfill.task.owner === owner)) return backfill;
    throw new CarillonError("BACKFILL_NOT_FOUND", `there is no backfill ${quote(id)}.`, {
      remedy: "It may have ended more than 7 days ago, or its task was deleted.",
    });
  }

  /** Stops a backfill; what it has enqueued goes on. Returns whether it was running. @throws `BACKFILL_NOT_FOUND` */
  async cancel(id: string, options: AuthorOptions = {}): Promise<boolean> {
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    const { task } = await this.get(id);
    const ended = await this.#scope.store.backfills.end(task.queue, id, "cancelled");
    if (ended) this.#scope.log("backfill.cancel", task, by, { details: { backfill: id } });
    return ended;
  }
}

function fault(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
