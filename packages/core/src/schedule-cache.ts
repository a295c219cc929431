import { CarillonError, isCarillonError } from "./errors.js";
import { calendarsOf, compileSchedule, usesSeed } from "./schedule/index.js";
import type { CompiledSchedule, Schedule, ScheduleContext } from "./schedule/types.js";
import { TaskSchedule } from "./task-schedule.js";

/** Compiled schedules by their text: thousands of tasks share a few dozen schedules. Bounded; oldest use goes first. */
export class ScheduleCache {
  readonly #entries = new Map<string, CompiledSchedule>();
  readonly #capacity: number;
  #context: ScheduleContext = {};
  #contexts = 0;

  constructor(capacity = 10_000) {
    this.#capacity = capacity;
  }

  /** What schedules refer to by name from now on. */
  setContext(context: ScheduleContext): void {
    this.#context = context;
    this.#contexts += 1;
  }

  /**
   * @param seed what `H` in a cron expression and jitter are derived from: the task's id
   * @throws `INVALID_SCHEDULE` for a calendar that the context does not have
   */
  get(schedule: Schedule, seed: string): TaskSchedule {
    return new TaskSchedule(schedule, seed, this.compiled(schedule, seed));
  }

  /** As `get`, without what depends on the task: one object for all that share it. */
  compiled(schedule: Schedule, seed: string): CompiledSchedule {
    try {
      return this.#compiled(schedule, seed);
    } catch (error) {
      if (isCarillonError(error)) throw error;
      // Not from a put: those were checked.
      throw new CarillonError("INVALID_SCHEDULE", "what is stored is no schedule.", { cause: error });
    }
  }

  #compiled(schedule: Schedule, seed: string): CompiledSchedule {
    // What does not depend on the seed may be shared.
    const own = usesSeed(schedule) ? `\n${seed}` : "";
    const named = calendarsOf(schedule).length > 0 ? `\n${this.#contexts}` : "";
    const key = `${JSON.stringify(schedule)}${own}${named}`;
    const known = this.#entries.get(key);
    if (known) {
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return known;
    }
    const compiled = compileSchedule(schedule, seed, this.#context);
    this.#entries.set(key, compiled);
    if (this.#entries.size > this.#capacity) {
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest);
        break;
      }
    }
    return compiled;
  }
}
