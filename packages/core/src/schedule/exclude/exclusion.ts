import type { Timetable } from "../timetable.js";
import type { CompiledSchedule, ScheduleContext } from "../types.js";
import type { Excluder } from "./excluder.js";

/** A parsed exclusion, not yet bound to the clock of a schedule: members of a union share it. */
export interface Exclusion {
  readonly wholeDays: boolean;
  on(target: Timetable): Excluder[];
  /**
   * The times that it names, whether the schedule has them or not; missing if they are those of a shared calendar.
   * @param zone that of the schedule
   */
  times?(zone: string): CompiledSchedule;
}

/** Context in which names and `H` are resolved. */
export interface Surroundings {
  readonly seed: string;
  readonly context: ScheduleContext;
  /** Ignore unknown calendars instead of refusing them. */
  readonly lenient: boolean;
}
