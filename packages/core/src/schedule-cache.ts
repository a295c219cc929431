import { compileSchedule, usesSeed } from "./schedule/index.js";
import type { CompiledSchedule, Schedule } from "./schedule/types.js";

/** Compiled schedules by their text: thousands of tasks share a few dozen schedules. Bounded; oldest use goes first. */
export class ScheduleCache {
  readonly #entries = new Map<string, CompiledSchedule>();
  readonly #capacity: number;

  constructor(capacity = 10_000) {
    this.#capacity = capacity;
  }

  /** @param seed what `H` in a cron expression is derived from: the task's id */
  get(schedule: Schedule, seed: string): CompiledSchedule {
    // What does not depend on the seed may be shared.
    const key = JSON.stringify(schedule) + (usesSeed(schedule) ? `\n${seed}` : "");
    const known = this.#entries.get(key);
    if (known) {
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return known;
    }
    const compiled = compileSchedule(schedule, seed);
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
