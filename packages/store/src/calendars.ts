import {
  CarillonError,
  checkCalendar,
  isName,
  localName,
  replan,
  ScheduleCache,
  type Skipped,
  shardOf,
  type TaskState,
} from "@carillon/core";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./link.js";
import { failsForAll } from "./redis-error.js";
import type { Scripts } from "./scripts.js";
import { DEFAULT_LINGER, decodeTask, isForeign, type StoredTask } from "./task-codec.js";
import { noHash, refused } from "./task-errors.js";

/** A shared calendar: dates and calendar events that schedules may name as exclusions. */
export interface SharedCalendar {
  readonly name: string;
  readonly entries: readonly string[];
  /** Grows with each change of any calendar of the namespace. */
  readonly revision: number;
  /** UTC ms. */
  readonly updated: number;
  readonly by: string;
}

export type CalendarOutcome = "created" | "updated" | "unchanged";

/** Field of the calendars' hash that counts changes; no calendar can have this name. */
const REVISION = "~revision";
/** Tasks planned anew in one script. */
const REPLAN_BATCH = 100;
const REPLAN_TRIES = 12;

/**
 * The shared calendars of a namespace, and what schedules mean with them. They live in another cluster slot than the tasks:
 * each task remembers the revision that it was planned with, and nobody decides about it with an older one.
 */
export class CalendarRepository {
  /** Compiled with the calendars as last read. */
  readonly schedules = new ScheduleCache();
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  #revision = 0;
  #calendars: ReadonlyMap<string, SharedCalendar> = new Map();

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /** The newest change that `schedules` knows of; 0: no calendar was ever read. */
  get revision(): number {
    return this.#revision;
  }

  /** Reads the calendars where they have changed since. Returns whether they had. */
  async refresh(): Promise<boolean> {
    const revision = Number(
      (await this.#link.ask((client) => client.hget(this.#keys.calendars, REVISION))) ?? 0,
    );
    if (revision === this.#revision) return false;
    await this.list();
    return true;
  }

  /** The calendars by name, as last read. */
  get known(): ReadonlyMap<string, SharedCalendar> {
    return this.#calendars;
  }

  /** A calendar that was deleted while a task that names it was put: the deletion loses. */
  async restore(known: ReadonlyMap<string, SharedCalendar>, name: string): Promise<void> {
    const calendar = known.get(name);
    if (calendar && !this.#calendars.has(name)) await this.put(name, calendar.entries, calendar.by);
  }

  /** All calendars by name, as stored now. */
  async list(): Promise<SharedCalendar[]> {
    const all = await this.#link.ask((client) => client.hgetall(this.#keys.calendars));
    const { [REVISION]: revision = "0", ...stored } = all;
    const calendars = Object.entries(stored)
      .flatMap(([name, text]) => decode(name, text))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    if (Number(revision) !== this.#revision) {
      this.#revision = Number(revision);
      this.#calendars = new Map(calendars.map((calendar) => [calendar.name, calendar]));
      this.schedules.setContext({
        calendars: new Map(calendars.map(({ name, entries }) => [name, entries])),
      });
    }
    return calendars;
  }

  /** @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, naming the entry */
  async put(
    name: string,
    entries: readonly string[],
    by: string,
  ): Promise<{ outcome: CalendarOutcome; revision: number }> {
    const text = JSON.stringify(checkCalendar(entries));
    const [word, revision] = await this.#send(name, text, by);
    return { outcome: word.toLowerCase() as CalendarOutcome, revision: Number(revision) };
  }

  /** Returns whether there was one. Whoever calls it has seen that no task names it. */
  async delete(name: string): Promise<boolean> {
    const [word] = await this.#send(name, "", "");
    return word === "DELETED";
  }

  async #send(name: string, entries: string, by: string): Promise<[word: string, revision: string]> {
    const answer = await this.#link.run(
      this.#scripts["put-calendar"],
      [this.#keys.calendars],
      [name, entries, by],
    );
    return answer as [string, string];
  }

  /** How many tasks of a queue name the calendar. */
  async users(queue: string, name: string): Promise<number> {
    return this.#link.ask((client) => client.zcard(this.#keys.queue(queue).planned(name)));
  }

  /**
   * Plans anew the tasks of a queue that were planned before their calendars last changed. Idempotent: what is up to date
   * is not touched. Returns how many were.
   */
  async replanStale(queue: string): Promise<number> {
    let replanned = 0;
    const failures: unknown[] = [];
    for (const calendar of this.#calendars.values()) {
      try {
        replanned += await this.#replanUsers(queue, calendar);
      } catch (error) {
        if (failsForAll(error)) throw error;
        // The tasks of the other calendars must be planned.
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return replanned;
  }

  async #replanUsers(queue: string, { name, revision }: SharedCalendar): Promise<number> {
    const planned = this.#keys.queue(queue).planned(name);
    let [replanned, pass] = [0, 0];
    for (let tries = 0; ; ) {
      const locals = await this.#link.ask((client) =>
        client.zrangebyscore(planned, "-inf", `(${revision}`, "LIMIT", pass, REPLAN_BATCH),
      );
      if (locals.length === 0) return replanned;
      const { done, left } = await this.replan(queue, locals, true);
      replanned += done;
      pass += left;
      if (left === locals.length) continue;
      // Changed under us: again. A task that never comes to rest must not keep us here.
      tries = done > 0 ? 0 : tries + 1;
      if (tries === REPLAN_TRIES) throw new CarillonError("CONFLICT", `tasks of ${queue} kept changing.`);
    }
  }

  /**
   * Gives these tasks the next time that their schedules mean now.
   *
   * @param all also those whose next time stays the same: what was decided meanwhile with older knowledge must not count
   * @returns how many were written; `left`: those that cannot be planned, for what this version does not know or others have written
   */
  async replan(
    queue: string,
    locals: readonly string[],
    all: boolean,
  ): Promise<{ done: number; left: number }> {
    if (locals.length === 0) return { done: 0, left: 0 };
    const keys = this.#keys.queue(queue);
    const [now, hashes] = await Promise.all([
      this.#link.run(this.#scripts["read-time"], [keys.tasks], []) as Promise<number>,
      this.#link.ask((client) =>
        Promise.all(locals.map((local) => client.hgetall(keys.task(local)).catch(noHash))),
      ),
    ]);
    let left = 0;
    const plans = locals.flatMap((local, i) => {
      try {
        const task = decodeTask(queue, local, Object.entries(hashes[i] ?? {}).flat());
        if (task && !isForeign(task)) return this.#planAnew(task, now, all);
      } catch {
        // Not readable, or its calendar is gone: the others must be planned.
      }
      left += 1;
      return [];
    });
    if (plans.length === 0) return { done: 0, left };
    const words = (await this.#link.run(
      this.#scripts.replan,
      [
        ...[keys.next, ...keys.dues, keys.runs, keys.expected],
        ...plans.flatMap(({ task }) => {
          const local = localName(task.definition);
          return [keys.task(local), keys.ledger(local)];
        }),
      ],
      [
        ...[this.#keys.wake, queue, keys.planned(""), this.#revision, DEFAULT_LINGER, plans.length],
        ...plans.flatMap(({ task, state, nominal, due, passed }) => {
          const local = localName(task.definition);
          const plan = [local, shardOf(local), task.generation, state, nominal ?? "", due ?? ""];
          return [...plan, passed?.from ?? "", passed?.to ?? ""];
        }),
      ],
    )) as string[];
    let done = 0;
    for (const [i, word] of words.entries()) {
      if (word === "OK") done += 1;
      if (!word.startsWith("ERROR ")) continue;
      const error = refused(localName((plans[i] as Replanned).task.definition), word.slice("ERROR ".length));
      if (failsForAll(error)) throw error;
      left += 1;
    }
    return { done, left };
  }

  #planAnew(task: StoredTask, now: number, all: boolean): Replanned[] {
    const { definition, state, nominal, due, waiting } = task;
    const schedule = this.schedules.get(definition.schedule, definition.id);
    // Its next time hangs on a run's end, not on the calendar.
    const kept = schedule.delay !== undefined && (nominal !== undefined || waiting !== undefined);
    const { slot, passed } = kept
      ? { slot: { nominal, due }, passed: undefined }
      : replan(schedule, task, now);
    if (!all && slot?.nominal === nominal && slot?.due === due) return [];
    const over = slot === undefined && task.pending.length === 0;
    const next = kept || state === "paused" ? state : over ? "finished" : "scheduled";
    return [{ task, state: next, nominal: slot?.nominal, due: slot?.due, passed }];
  }
}

/** What a task is planned anew to. */
interface Replanned {
  readonly task: StoredTask;
  readonly state: TaskState;
  readonly nominal: number | undefined;
  readonly due: number | undefined;
  readonly passed: Skipped | undefined;
}

/** None where someone else than Carillon has written it: to a task that names it, there is no such calendar. */
function decode(name: string, text: string): SharedCalendar[] {
  try {
    const [revision, updated, by] = text.split(" ", 3) as [string, string, string];
    const json = text.slice(revision.length + updated.length + by.length + 3);
    const entries = JSON.parse(json) as string[];
    const texts = Array.isArray(entries) && entries.every((entry) => typeof entry === "string");
    if (!isName(name) || !texts || !Number.isSafeInteger(Number(revision))) return [];
    return [{ name, entries, revision: Number(revision), updated: Number(updated), by }];
  } catch {
    return [];
  }
}
