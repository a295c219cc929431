import { randomBytes } from "node:crypto";
import {
  counted,
  type Decision,
  forbidden,
  localName,
  type OverlapPolicy,
  occurrenceKey,
} from "@carillon/core";
import { type Backfill, type ClaimItem, failsForAll, redisError, type Store } from "@carillon/store";
import type { Settings } from "./options.js";

/** A step that must wait for a run is tried again after, in ms. */
const WAIT = 1_000;
/** One that failed, or whose task only newer nodes can read, is tried again after, in ms. */
const PUT_OFF = 10_000;
/** Backfills looked at in one turn. */
const AT_ONCE = 100;

/** Walks through past occurrences, one at a time, each under the overlap policy. Resumes where another node stopped. */
export class Backfiller {
  readonly #store: Store;
  readonly #settings: Settings;

  constructor(store: Store, settings: Settings) {
    this.#store = store;
    this.#settings = settings;
  }

  /** @param goOn asked after each step @returns whether all that is due was done */
  async work(queue: string, goOn: () => boolean): Promise<boolean> {
    const now = await this.#store.tasks.time(queue);
    for (const backfill of await this.#store.backfills.list(queue, now, AT_ONCE)) {
      await this.#walk(backfill, goOn).catch((error: unknown) => this.#putOff(backfill, error));
      if (!goOn()) return false;
    }
    return true;
  }

  /** What fails in one backfill is that one's matter: those behind it go on. @throws what Redis fails with for all */
  async #putOff({ task, id }: Backfill, error: unknown): Promise<void> {
    if (failsForAll(error)) throw error;
    const { code, message } = redisError(error);
    const { queue } = task;
    const details = { code, queue, backfill: id, task: localName(task), error: message };
    this.#settings.logger.error(details, "a backfill is put off");
    await this.#store.backfills.later(queue, id, PUT_OFF);
  }

  async #walk(backfill: Backfill, goOn: () => boolean): Promise<void> {
    const { queue } = backfill.task;
    const { backfills } = this.#store;
    // Over, and asked about for long enough.
    if (backfill.state !== "running") return backfills.drop(queue, backfill.id);
    let current: Backfill | undefined = backfill;
    while (current?.state === "running") {
      const wait = await this.#step(current);
      if (wait === undefined) return;
      if (wait > 0) return backfills.later(queue, current.id, wait);
      // Behind the others: a long one must not keep them waiting.
      if (!goOn()) return backfills.later(queue, current.id, 0);
      current = await backfills.get(queue, current.id);
    }
  }

  /** One occurrence. Returns the ms to wait before the next one; undefined: the backfill is over. */
  async #step(backfill: Backfill): Promise<number | undefined> {
    const { task: name, id, at, to, every } = backfill;
    const { backfills, calendars, claims } = this.#store;
    const look = await claims.look(name);
    // Deleted: what was asked of it goes too.
    if (look === "gone") {
      await backfills.drop(name.queue, id);
      return undefined;
    }
    // A newer node's.
    if (look === "foreign") return PUT_OFF;
    const { now, entry } = look;
    const { definition, fired, pending } = entry.task;
    if (entry.task.calendarRevision > calendars.revision) await calendars.refresh();
    const schedule = calendars.schedules.get(definition.schedule, definition.id);
    const nominal = schedule.next(at);
    const taken = fired + counted(pending);
    if (nominal === undefined || nominal > to || schedule.spent(taken)) {
      await backfills.end(name.queue, id, "done");
      return undefined;
    }
    const overlap = backfill.overlap ?? definition.overlap;
    const decision = decideStep(entry, overlap, nominal, id, schedule.spent(taken + 1));
    const count = decision.enqueue ? "enqueued" : "skipped";
    const done = decision.enqueue || decision.skipped.length > 0;
    const set: [string, number][] = done
      ? [
          ["at", nominal],
          [count, backfill[count] + 1],
        ]
      : [];
    const by = { token: randomBytes(8).toString("hex"), node: this.#settings.nodeId, overlap };
    if (!done && !decision.cancel) return WAIT;
    const status = await claims.commitStep(name, { entry, decision }, { id, at, set }, by, now);
    if (status === "OK" || status === "DONE") return done ? every : WAIT;
    if (status.startsWith("ERROR")) throw redisError(new Error(status.slice("ERROR ".length)));
    return 0;
  }
}

/** @param last whether `maxRuns` allows no other after it */
function decideStep(
  entry: ClaimItem["entry"],
  overlap: OverlapPolicy,
  nominal: number,
  id: string,
  last: boolean,
): Decision {
  const { definition, pending } = entry.task;
  const kept = { next: "kept", pending } as const;
  if (!forbidden(overlap, entry.running !== undefined)) {
    const key = `${occurrenceKey(definition, nominal)}/${id}`;
    const enqueue = { key, nominal, due: nominal, trigger: "backfill" } as const;
    const next = last && entry.task.nominal !== undefined ? undefined : "kept";
    return { next, pending, skipped: [], enqueue };
  }
  if (overlap === "skip") return { ...kept, skipped: [{ reason: "overlap", from: nominal, to: nominal }] };
  return { ...kept, skipped: [], ...(overlap === "cancel-running" ? { cancel: true as const } : {}) };
}
