import { CarillonError, isCarillonError } from "./errors.js";
import { calendarsOf, compileSchedule, usesSeed } from "./schedule/index.js";
import type { CompiledSchedule, Schedule, ScheduleContext } from "./schedule/types.js";
import { TaskSchedule } from "./task-schedule.js";

/** What a schedule's text alone says of how far it may be shared. */
interface Traits {
  readonly seeded: boolean;
  readonly named: boolean;
}

/** Compiled schedules by their text: thousands of tasks share a few dozen schedules. Bounded; oldest use goes first. */
export class ScheduleCache {
  readonly #entries = new Map<string, CompiledSchedule>();
  readonly #traits = new Map<string, Traits>();
  readonly #capacity: number;
  #context: ScheduleContext = {};
  #contexts = 0;

  constructor(capacity = 10_000) {
    this.#capacity = capacity;
  }

  /** What schedules refer to by name. */
  get context(): ScheduleContext {
    return this.#context;
  }

  /** What schedules refer to by name from now on. */
  setContext(context: ScheduleContext): void {
    this.#context = context;
    this.#contexts += 1;
  }

  /**
   * @param seed what `H` in a cron expression and jitter are derived from: the task's id
   * @param text the schedule as JSON, where it is at hand
   * @throws `INVALID_SCHEDULE` for a calendar that the context does not have
   */
  get(schedule: Schedule, seed: string, text?: string): TaskSchedule {
    return new TaskSchedule(schedule, seed, this.compiled(schedule, seed, text));
  }

  /** As `get`, without what depends on the task: one object for all that share it. */
  compiled(schedule: Schedule, seed: string, text?: string): CompiledSchedule {
    try {
      return this.#compiled(schedule, seed, text ?? JSON.stringify(schedule));
    } catch (error) {
      if (isCarillonError(error)) throw error;
      // Not from a put: those were checked.
      throw new CarillonError("INVALID_SCHEDULE", "what is stored is no schedule.", { cause: error });
    }
  }

  #compiled(schedule: Schedule, seed: string, text: string): CompiledSchedule {
    const { seeded, named } = this.#traitsOf(schedule, text);
    // What does not depend on the seed may be shared.
    const key = `${text}${seeded ? `\n${seed}` : ""}${named ? `\n${this.#contexts}` : ""}`;
    const known = this.#entries.get(key);
    // As long as there is room, nobody asks which was used last.
    if (known && this.#entries.size < this.#capacity) return known;
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
    if (map.size <= this.#capacity) return;
    for (const oldest of map.keys()) {
      map.delete(oldest);
      return;
    }
  }
}
