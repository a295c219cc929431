import { MAX_TIME, MINUTE } from "../civil.js";
import { grainOf, type Timetable } from "../timetable.js";
import type { CompiledSchedule } from "../types.js";
import { isUtc } from "../zone/names.js";
import { MINUTES_ALIGNED_SINCE } from "../zone/offsets.js";

/** Fixed rate: `origin + k * interval` for k = 0, 1, 2, …, in ms. */
export class EveryInterval implements CompiledSchedule {
  readonly interval: number;
  readonly origin: number;

  constructor(interval: number, origin: number) {
    this.interval = interval;
    this.origin = origin;
  }

  get grain(): number {
    return grainOf(this.interval, this.origin);
  }

  /** Time from which it is known to contain every time of another schedule; infinite if unknown. */
  hasAllFrom({ compiled, grain, zone }: Pick<Timetable, "compiled" | "grain" | "zone">): number {
    const hasAll = (steps: readonly number[]) => steps.every((step) => step % this.interval === 0);
    if (compiled instanceof EveryInterval) {
      return hasAll([compiled.interval, this.origin - compiled.origin])
        ? this.origin
        : Number.POSITIVE_INFINITY;
    }
    if (!hasAll([grain, this.origin])) return Number.POSITIVE_INFINITY;
    return grain === MINUTE && !isUtc(zone) ? Math.max(this.origin, MINUTES_ALIGNED_SINCE) : this.origin;
  }

  next(after: number): number | undefined {
    const k = Math.max(0, Math.floor((after - this.origin) / this.interval) + 1);
    const time = this.origin + k * this.interval;
    return time <= MAX_TIME ? time : undefined;
  }

  latest(at: number): number | undefined {
    if (!(at >= this.origin)) return undefined;
    const k = Math.floor((Math.min(at, MAX_TIME) - this.origin) / this.interval);
    return this.origin + k * this.interval;
  }
}
