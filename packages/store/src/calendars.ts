import { CarillonError, type TaskState } from "@carillon/core";
import {
  checkCalendar,
  isName,
  isOver,
  localName,
  replan,
  ScheduleCache,
  type Skipped,
  shardOf,
} from "@carillon/core/internal";
import { ONCE_ARGS } from "./marks.js";
import { readEach, readHashes } from "./redis/hashes.js";
import { failsForAll } from "./redis/redis-error.js";
import { Repository } from "./repository.js";
import { FACTS } from "./script/facts.js";
import { LEDGER, ONCE, TASK, TRIED } from "./script/libraries.js";
import { answers, script } from "./script/script.js";
import { decodeTask, isForeign, isManual, isRetired, type StoredTask } from "./task/codec.js";
import { refused } from "./task/errors.js";

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

const PUT_CALENDAR = script("put-calendar", {
  once: "mark",
  keys: ["calendars", "marks"],
  args: [...ONCE_ARGS, "name", "entries", "by"],
  uses: [ONCE],
  answer: answers<[word: string, revision: string]>(),
});

const REPLAN = script("replan", {
  once: "generation",
  keys: ["next", "expected", "runs"],
  args: ["revision"],
  each: {
    keys: ["task", "due", "ledger"],
    args: ["name", "shard", "gen", "state", "nominal", "dueAt", "passedFrom", "passedTo"],
  },
  uses: [TASK, LEDGER, TRIED],
  answer: answers<string[]>(),
});

export const READ_TIME = script("read-time", { once: "reads", keys: ["any"], answer: answers<number>() });

/** Tasks replanned in one script. */
const REPLAN_BATCH = 100;
const REPLAN_TRIES = 12;

/**
 * The shared calendars of a namespace, and what schedules mean with them. They live in another cluster slot than the tasks:
 * each task stores the revision that it was planned with, and is never decided with an older one.
 */
export class CalendarRepository extends Repository {
  /** Compiled with the calendars as last read. */
  readonly schedules = new ScheduleCache();
  #revision = 0;
  #calendars: ReadonlyMap<string, SharedCalendar> = new Map();

  /** The newest change that `schedules` knows of; 0: no calendar was ever read. */
  get revision(): number {
    return this.#revision;
  }

  /** Reads the calendars if they have changed. Returns whether they had. */
  async refresh(): Promise<boolean> {
    const revision = Number(
      (await this.link.ask((client) => client.hget(this.keys.calendars, FACTS.revision))) ?? 0,
    );
    if (revision === this.#revision) return false;
    await this.list();
    return true;
  }

  /** The calendars by name, as last read. */
  get known(): ReadonlyMap<string, SharedCalendar> {
    return this.#calendars;
  }

  /** Restores a calendar that was deleted while a task that names it was put. */
  async restore(known: ReadonlyMap<string, SharedCalendar>, name: string): Promise<void> {
    const calendar = known.get(name);
    if (calendar && !this.#calendars.has(name)) await this.put(name, calendar.entries, calendar.by);
  }

  /** All calendars by name, as stored now. */
  async list(): Promise<SharedCalendar[]> {
    const all = await this.link.ask((client) => client.hgetall(this.keys.calendars));
    const { [FACTS.revision]: revision = "0", ...stored } = all;
    const calendars = Object.entries(stored)
      .flatMap(([name, text]) => decode(name, text))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    if (Number(revision) !== this.#revision) {
      this.#revision = Number(revision);
      this.#calendars = new Map(calendars.map((calendar) => [calendar.name, calendar]));
      this.schedules.setContext({
        calendars: new Map(this.#entries()),
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
    // The answer that said whether there was one before was lost.
    const outcome = word === "DONE" ? "updated" : (word.toLowerCase() as CalendarOutcome);
    return { outcome, revision: Number(revision) };
  }

  /** Returns whether there was one. The caller has checked that no task names it. */
  async delete(name: string): Promise<boolean> {
    const [word] = await this.#send(name, "", "");
    return word !== "MISSING";
  }

  async #send(name: string, entries: string, by: string): Promise<[word: string, revision: string]> {
    return this.marks.change(this.keys.marks, "calendars", async (once) => {
      const answer = await this.scripts.run(PUT_CALENDAR, this.keys, { ...once, name, entries, by });
      return answer[0] === "STALE" ? "STALE" : answer;
    });
  }

  async users(queue: string, name: string): Promise<number> {
    const [count = 0] = await readEach(this.link, [["zcard", this.keys.queue(queue).planned(name)]]);
    return count;
  }

  /**
   * Replans the tasks of a queue that were planned before their calendars last changed. Idempotent: up-to-date tasks are left
   * alone. Returns the number of replanned tasks.
   */
  async replanStale(queue: string): Promise<number> {
    let replanned = 0;
    const failures: unknown[] = [];
    for (const calendar of this.#calendars.values()) {
      try {
        replanned += await this.#replanUsers(queue, calendar);
      } catch (error) {
        if (failsForAll(error)) throw error;
        // The tasks of the other calendars must still be planned.
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return replanned;
  }

  async #replanUsers(queue: string, { name, revision }: SharedCalendar): Promise<number> {
    const planned = this.keys.queue(queue).planned(name);
    let [replanned, pass] = [0, 0];
    for (let tries = 0; ; ) {
      const locals = await this.link.ask((client) =>
        client.zrangebyscore(planned, "-inf", `(${revision}`, "LIMIT", pass, REPLAN_BATCH),
      );
      if (locals.length === 0) return replanned;
      const { done, left } = await this.replan(queue, locals, true);
      replanned += done;
      pass += left;
      if (left === locals.length) continue;
      // Changed meanwhile: retry. A task that keeps changing must not keep this loop running.
      tries = done > 0 ? 0 : tries + 1;
      if (tries === REPLAN_TRIES)
        throw new CarillonError("CONFLICT", `tasks of ${queue} kept changing while they were replanned.`);
    }
  }

  /**
   * Gives these tasks the next time that their schedules mean now.
   *
   * @param all also those whose next time stays the same, so that decisions made meanwhile with older calendars become stale
   * @returns how many were written; `left`: number of tasks that cannot be planned: from a newer version, or corrupt
   */
  async replan(
    queue: string,
    locals: readonly string[],
    all: boolean,
  ): Promise<{ done: number; left: number }> {
    if (locals.length === 0) return { done: 0, left: 0 };
    const keys = this.keys.queue(queue);
    const { plans, ...planned } = await this.#plan(queue, locals, all, this.schedules);
    let { left } = planned;
    if (plans.length === 0) return { done: 0, left };
    const words = await this.scripts.run(
      REPLAN,
      keys,
      { revision: this.#revision },
      plans.map(({ task, state, nominal, due, passed }) => {
        const name = localName(task.definition);
        const shard = shardOf(name);
        return {
          task: keys.task(name),
          due: keys.due(shard),
          ledger: keys.ledger(name),
          name,
          shard,
          gen: task.generation,
          state,
          nominal,
          dueAt: due,
          passedFrom: passed?.from,
          passedTo: passed?.to,
        };
      }),
    );
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

  /**
   * Tasks of a queue whose next time would move if a calendar had these entries, with that time. Those that cannot be
   * planned are left out.
   */
  async *movedBy(queue: string, name: string, entries: readonly string[]): AsyncGenerator<Replanned> {
    await this.refresh();
    const schedules = new ScheduleCache();
    schedules.setContext({ calendars: new Map([...this.#entries(), [name, entries]]) });
    const planned = this.keys.queue(queue).planned(name);
    for (let at = 0; ; at += REPLAN_BATCH) {
      const locals = await this.link.ask((client) =>
        client.zrange(planned, at, String(at + REPLAN_BATCH - 1)),
      );
      yield* (await this.#plan(queue, locals, false, schedules)).plans;
      if (locals.length < REPLAN_BATCH) return;
    }
  }

  #entries(): [string, readonly string[]][] {
    return [...this.#calendars.values()].map(({ name, entries }) => [name, entries]);
  }

  /** New plans of tasks; `left`: number of those that cannot be planned. */
  async #plan(
    queue: string,
    locals: readonly string[],
    all: boolean,
    schedules: ScheduleCache,
  ): Promise<{ plans: Replanned[]; left: number }> {
    const keys = this.keys.queue(queue);
    const [now, hashes] = await Promise.all([
      this.scripts.run(READ_TIME, { any: keys.tasks }),
      readHashes(this.link, locals.map(keys.task)),
    ]);
    let left = 0;
    const plans = locals.flatMap((local, i) => {
      try {
        const task = decodeTask(queue, local, hashes[i] ?? {});
        if (task && !isForeign(task)) return this.#planAnew(task, now, all, schedules);
      } catch {
        // Not readable, or its calendar was deleted: the others must still be planned.
      }
      left += 1;
      return [];
    });
    return { plans, left };
  }

  #planAnew(task: StoredTask, now: number, all: boolean, schedules: ScheduleCache): Replanned[] {
    const { definition, state, nominal, due, waiting } = task;
    if (isRetired(task)) return [];
    const schedule = schedules.get(definition);
    // Its next time depends on the end of a run, not on the calendar.
    const kept = schedule.delay !== undefined && (nominal !== undefined || waiting !== undefined);
    const { slot, passed } = kept
      ? { slot: { nominal, due }, passed: undefined }
      : replan(schedule, task, now);
    if (!all && slot?.nominal === nominal && slot?.due === due) return [];
    const over = isOver({ nominal: slot?.nominal, pending: task.pending, manual: isManual(task) });
    const next = kept || state === "paused" ? state : over ? "finished" : "scheduled";
    return [{ task, state: next, nominal: slot?.nominal, due: slot?.due, passed }];
  }
}

/** New state and times of a replanned task. */
interface Replanned {
  readonly task: StoredTask;
  readonly state: TaskState;
  readonly nominal: number | undefined;
  readonly due: number | undefined;
  readonly passed: Skipped | undefined;
}

/** Empty if the text is corrupt or foreign: for a task that names it, the calendar does not exist. */
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
