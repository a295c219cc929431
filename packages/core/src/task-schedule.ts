import { delayOf, dueOf, maxRunsOf } from "./schedule/index.js";
import type { CompiledSchedule, Schedule } from "./schedule/types.js";

/** A time that a schedule names, and when it is acted on: later by the jitter. UTC ms. */
export interface Slot {
  readonly nominal: number;
  readonly due: number;
}

/** One task's schedule: what it compiles to, and what depends on the task. */
export class TaskSchedule implements CompiledSchedule {
  /** Milliseconds from the end of a run to the next one; undefined: times come from the clock. */
  readonly delay: number | undefined;
  readonly #schedule: Schedule;
  readonly #seed: string;
  readonly #compiled: CompiledSchedule;

  /** @param seed the task's id */
  constructor(schedule: Schedule, seed: string, compiled: CompiledSchedule) {
    this.#schedule = schedule;
    this.#seed = seed;
    this.#compiled = compiled;
    this.delay = delayOf(schedule);
  }

  next(after: number): number | undefined {
    return this.#compiled.next(after);
  }

  latest(at: number): number | undefined {
    return this.#compiled.latest(at);
  }

  due(nominal: number): number {
    return dueOf(this.#schedule, this.#seed, this.#compiled, nominal);
  }

  /** The first nominal time strictly after `after`, with when it is due. */
  slotAfter(after: number): Slot | undefined {
    const nominal = this.next(after);
    return nominal === undefined ? undefined : { nominal, due: this.due(nominal) };
  }

  /** The last nominal time that is due by `now`. Jitter stays below the gap, so it is one of the last two. */
  latestDue(now: number): number | undefined {
    const latest = this.latest(now);
    return latest !== undefined && this.due(latest) > now ? this.latest(latest - 1) : latest;
  }

  /** Whether `fired` occurrences are all that `maxRuns` allows. */
  spent(fired: number): boolean {
    const most = maxRunsOf(this.#schedule);
    return most !== undefined && fired >= most;
  }
}
