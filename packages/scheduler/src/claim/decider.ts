import { decide } from "@carillon/core/internal";
import { type ClaimItem, type DueEntry, dueTask, isForeign, type Store } from "@carillon/store";
import type { Settings } from "../options.js";

/** A decision as of a time. */
export interface Decided {
  readonly item: ClaimItem;
  readonly at: number;
}

/** Decides about due tasks, after it has refreshed the calendars if needed. Tasks that cannot be decided here are logged once. */
export class Decider {
  readonly #store: Store;
  readonly #settings: Settings;
  readonly #warned = new Set<string>();

  constructor(store: Store, settings: Settings) {
    this.#store = store;
    this.#settings = settings;
  }

  /**
   * Decides about each task as of its time, or as of now if that is past.
   * @returns in the same order, without the tasks that cannot be decided here
   */
  async decide(queue: string, entries: readonly DueEntry[], now: number): Promise<Decided[]> {
    await this.#learnCalendars(entries);
    return entries.flatMap((entry) => {
      const at = Math.max(entry.since ?? now, now);
      return this.#decide(queue, entry, at).map((item) => ({ item, at }));
    });
  }

  /** Refreshes the calendars if a task was planned with newer ones than ours. */
  async #learnCalendars(entries: readonly DueEntry[]): Promise<void> {
    const { calendars } = this.#store;
    const newer = ({ task }: DueEntry) =>
      task !== undefined && !isForeign(task) && task.calendarRevision > calendars.revision;
    if (entries.some(newer)) await calendars.refresh();
  }

  #decide(queue: string, entry: DueEntry, now: number): ClaimItem[] {
    const { task, local } = entry;
    if (!task || isForeign(task)) {
      this.#warnOnce(
        `${queue} ${local}`,
        task
          ? `written in format ${task.version}, newer than ours: left to newer nodes`
          : "due, but its definition is missing or corrupt",
        { queue, task: local },
      );
      return [];
    }
    try {
      const item = { ...entry, task };
      const decision = decide(dueTask(item, this.#store.calendars.schedules), now, this.#settings.grace);
      return [{ entry: item, decision }];
    } catch (error) {
      this.#warnOnce(`${queue} ${local} ${task.generation}`, "cannot be decided on this node: skipped", {
        queue,
        task: local,
        error: String(error),
      });
      return [];
    }
  }

  #warnOnce(key: string, message: string, details: object): void {
    if (this.#warned.has(key)) return;
    if (this.#warned.size > 10_000) this.#warned.clear();
    this.#warned.add(key);
    this.#settings.logger.warn(details, message);
  }
}
