import { CarillonError } from "@carillon/core";
import { assertName, assertOptions, checkCalendar, quote } from "@carillon/core/internal";
import type { CalendarOutcome, SharedCalendar } from "@carillon/store";
import { shown } from "./change.js";
import type { Scope } from "./scope.js";
import type { DeleteOptions } from "./types.js";

/** The answer of `client.calendars.put`. */
export interface PutCalendarResult {
  readonly name: string;
  readonly outcome: CalendarOutcome;
  readonly revision: number;
  /** Tasks whose next time was computed again. */
  readonly replanned: number;
}

export interface CalendarView extends Omit<SharedCalendar, "entries"> {
  /** Number of entries. */
  readonly entries: number;
  /** Number of tasks that use it. */
  readonly tasks: number;
}

/** The shared calendars of a namespace, at `client.calendars`. */
export class Calendars {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** The calendars, each with the number of tasks that name it. */
  async list(): Promise<CalendarView[]> {
    const [calendars, queues] = await Promise.all([this.#scope.store.calendars.list(), this.#scope.queues()]);
    return Promise.all(
      calendars.map(async ({ entries, ...calendar }) => ({
        ...calendar,
        entries: entries.length,
        tasks: await this.#countUsers(calendar.name, queues),
      })),
    );
  }

  /** @throws `CALENDAR_NOT_FOUND` */
  async get(name: string): Promise<SharedCalendar> {
    const calendar = (await this.#scope.store.calendars.list()).find((one) => one.name === name);
    if (!calendar) throw notFound(name);
    return calendar;
  }

  /**
   * Stores a calendar: dates (`2026-12-25`) and calendar events (`*-05-01`), which schedules name in `except`. The next times of all
   * tasks that name it are computed again before this resolves; if it is interrupted, put the calendar again, or a node does it.
   *
   * @throws `INVALID_NAME`, `INVALID_SCHEDULE` and `INVALID_TIMEZONE` naming the entry, `FORBIDDEN` for a client that is bound
   * to an owner: calendars belong to the whole namespace
   */
  async put(
    name: string,
    entries: readonly string[],
    options: { by?: string | undefined } = {},
  ): Promise<PutCalendarResult> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    assertName(name, "name");
    checkCalendar(entries);
    const { calendars } = this.#scope.store;
    const by = this.#scope.author(options.by);
    const [{ entries: before } = {}] = (await calendars.list()).filter((one) => one.name === name);
    const stored = await calendars.put(name, entries, by);
    if (stored.outcome !== "unchanged") {
      const facts = { before: before && shown({ entries: before }), after: shown({ entries }) };
      this.#scope.log("calendar.put", { calendar: name }, by, facts);
    }
    await calendars.refresh();
    let replanned = 0;
    for (const queue of await this.#scope.queues()) replanned += await calendars.replanStale(queue);
    return { name, ...stored, replanned };
  }

  /** @throws `CALENDAR_NOT_FOUND`, `CALENDAR_IN_USE` while a task names it, `FORBIDDEN` for a bound client */
  async delete(name: string, options: DeleteOptions = {}): Promise<void> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    const by = this.#scope.author(options.by);
    assertName(name, "name");
    const tasks = await this.#countUsers(name, await this.#scope.queues());
    if (tasks > 0) {
      throw new CarillonError(
        "CALENDAR_IN_USE",
        `${tasks === 1 ? "1 task names" : `${tasks} tasks name`} the calendar ${name}.`,
        { remedy: "Change or delete them first." },
      );
    }
    const calendar = await this.get(name);
    if (!(await this.#scope.store.calendars.delete(name))) throw notFound(name);
    this.#scope.log("calendar.delete", { calendar: name }, by, {
      before: shown({ entries: calendar.entries }),
    });
    // A task that names it may have been put meanwhile.
    const since = await this.#countUsers(name, await this.#scope.queues());
    if (since > 0) {
      await this.put(name, calendar.entries, { by: calendar.by });
      throw new CarillonError("CALENDAR_IN_USE", `${since} tasks name the calendar ${name}.`);
    }
  }

  async #countUsers(name: string, queues: readonly string[]): Promise<number> {
    const { calendars } = this.#scope.store;
    const counts = await Promise.all(queues.map((queue) => calendars.users(queue, name)));
    return counts.reduce((sum, count) => sum + count, 0);
  }
}

function notFound(name: string): CarillonError {
  return new CarillonError("CALENDAR_NOT_FOUND", `there is no calendar ${quote(name)}.`, {
    remedy: "List the calendars to find its name.",
  });
}
