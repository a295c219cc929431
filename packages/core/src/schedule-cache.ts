import { CarillonError, isCarillonError } from "./errors.js";
import { seedOf } from "./names.js";
import { calendarsOf, compileSchedule, usesSeed } from "./schedule/index.js";
import type { CompiledSchedule, Schedule, ScheduleContext } from "./schedule/types.js";
import { type Scheduled, TaskSchedule } from "./task-schedule.js";

/** Properties of a schedule that limit who can share its compiled form. */
interface Traits {
  readonly seeded: boolean;
  readonly named: boolean;
}

/** Compiled schedules by their text: thousands of tasks share a few dozen schedules. Bounded; drops the least recently used. */
export class ScheduleCache {
  readonly #entries = new Map<string, CompiledSchedule>();
  readonly #traits = new Map<string, Traits>();
  #context: ScheduleContext = {};
  #contexts = 0;

  constructor(private readonly capacity = 10_000) {}

  /** Calendars that schedules refer to by name. */
  get context(): ScheduleContext {
    return this.#context;
  }

  /** Replaces the calendars; schedules that name one are then compiled again. */
  setContext(context: ScheduleContext): void {
    this.#context = context;
    this.#contexts += 1;
  }

  /**
   * @param task `H` in a cron expression and jitter are derived from its owner and id
   * @param text the schedule as JSON, if the caller has it
   * @throws `INVALID_SCHEDULE` for a calendar that the context does not have
   */
  get(task: Scheduled, text?: string): TaskSchedule {
    return new TaskSchedule(task, this.compiled(task.schedule, seedOf(task), text));
  }

  /** The same as `get`, without the parts that depend on the task: one object for all tasks that share it. */
  compiled(schedule: Schedule, seed: string, text?: string): CompiledSchedule {
    try {
      return this.#compiled(schedule, seed, text ?? JSON.stringify(schedule));
    } catch (error) {
      if (isCarillonError(error)) throw error;
      // Only corrupt or foreign data fails here, because puts are checked.
      throw new CarillonError("INVALID_SCHEDULE", "the stored schedule is corrupt.", { cause: error });
    }
  }

  #compiled(schedule: Schedule, seed: string, text: string): CompiledSchedule {
    const { seeded, named } = this.#traitsOf(schedule, text);
    // Schedules that do not depend on the seed are shared.
    const key = `${text}${seeded ? `\n${seed}` : ""}${named ? `\n${this.#contexts}` : ""}`;
    const known = this.#entries.get(key);
    // Skips the LRU bookkeeping while the cache has room.
    if (known && this.#entries.size < this.capacity) return known;
    this.#entries.delete(key);
    const compiled = known ?? compileSchedule(schedule, seed, this.#context);
    this.#entries.set(key, compiled);
    this.#bound(this.#entries);
    return compiled;
  }

  #traitsOf(schedule: Schedule, text: string): Traits {
    const known = this.#traits.get(text);
    if (known) return known;
    const traits = { seeded: usesSeed(schedule), named: calendarsOf(schedule).length > 0 };
    this.#traits.set(text, traits);
    this.#bound(this.#traits);
    return traits;
  }

  #bound(map: Map<string, unknown>): void {
    if (map.size <= this.capacity) return;
    for (const oldest of map.keys()) {
      map.delete(oldest);
      return;
    }
  }
}
