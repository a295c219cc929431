import { seedOf } from "./names.js";
import { delayOf, dueOf } from "./schedule/index.js";
import type { CompiledSchedule, Schedule } from "./schedule/types.js";
import type { TaskDefinition } from "./task.js";

/** A nominal time of a schedule, and when it is due: later by the jitter. UTC ms. */
export interface Slot {
  readonly nominal: number;
  readonly due: number;
}

/** The fields of a task on which its times depend. */
export type Scheduled = Pick<TaskDefinition, "owner" | "id" | "schedule">;

/** The compiled schedule of one task, with its jitter and `maxRuns`. */
export class TaskSchedule implements CompiledSchedule {
  /** Milliseconds from the end of a run to the next one; undefined if the times do not depend on runs. */
  readonly delay: number | undefined;
  readonly #schedule: Schedule;
  readonly #seed: string;

  constructor(
    task: Scheduled,
    private readonly compiled: CompiledSchedule,
  ) {
    this.#schedule = task.schedule;
    this.#seed = seedOf(task);
    this.delay = delayOf(task.schedule);
  }

  next(after: number): number | undefined {
    return this.compiled.next(after);
  }

  latest(at: number): number | undefined {
    return this.compiled.latest(at);
  }

  due(nominal: number): number {
    return dueOf(this.#schedule, this.#seed, this.compiled, nominal);
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

  /** Whether `fired` occurrences use up `maxRuns`. */
  spent(fired: number): boolean {
    const most = this.#schedule.maxRuns;
    return most !== undefined && fired >= most;
  }
}
