import { MINUTE, SECOND } from "./civil.js";
import { ALL_SIXTY, type Sixty } from "./fields/bits.js";
import type { Fields } from "./fields/fields.js";
import type { CompiledSchedule } from "./types.js";
import type { Segment } from "./zone/offsets.js";

/** The times of a schedule of one kind, without its limits, and properties that exclusions and previews need. */
export interface Timetable {
  readonly compiled: CompiledSchedule;
  /** Zone of its clock. */
  readonly zone: string;
  /** Each of its times, on that clock, is a multiple of this: a minute, a second or 1 ms. */
  readonly grain: number;
  /** Cron and calendar events: the values of their times on that clock. */
  readonly fields?: Fields;
  /** See `FieldSchedule.wallOf`. Default: the plain wall clock. */
  readonly wallOf?: (occurrence: number) => number;
  /** See `FieldSchedule.lostBefore`. */
  readonly lostBefore?: (segment: Segment) => number | undefined;
}

/** The grain of times that are all multiples of each of these, in ms. */
export function grainOf(...steps: readonly number[]): number {
  return [MINUTE, SECOND].find((grain) => steps.every((step) => step % grain === 0)) ?? 1;
}

export function grainOfFields({ seconds, subSeconds }: Pick<Fields, "seconds" | "subSeconds">): number {
  if (subSeconds) return 1;
  return seconds.lo === 1 && seconds.hi === 0 ? MINUTE : SECOND;
}

const WHOLE_MINUTE: Sixty = { lo: 1, hi: 0 };

/** The seconds of a minute that times of this grain can have; undefined if they can have parts of a second. */
export function secondsOf(grain: number): Sixty | undefined {
  return grain === MINUTE ? WHOLE_MINUTE : grain === SECOND ? ALL_SIXTY : undefined;
}
