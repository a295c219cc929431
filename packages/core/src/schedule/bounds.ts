import { CarillonError } from "../errors.js";
import { formatInstant } from "../words/times.js";
import { type Instant, parseInstant } from "./text/instant.js";
import type { CompiledSchedule, ScheduleBounds } from "./types.js";

/** Both inclusive. */
export interface Bounds {
  readonly start: number;
  readonly end: number;
}

export const UNBOUNDED: Bounds = { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY };

/** @throws `INVALID_SCHEDULE` */
export function boundsOf(
  { start, end }: { [Bound in keyof ScheduleBounds]: Instant | undefined },
  path = "schedule",
): Bounds {
  if (start === undefined && end === undefined) return UNBOUNDED;
  const bounds = {
    start: start === undefined ? UNBOUNDED.start : parseInstant(start, `${path}.start`),
    end: end === undefined ? UNBOUNDED.end : parseInstant(end, `${path}.end`),
  };
  if (bounds.start > bounds.end) {
    throw new CarillonError("INVALID_SCHEDULE", "The end is before the start.", {
      field: `${path}.end`,
      remedy: `Give a time from ${formatInstant(bounds.start)} on.`,
    });
  }
  return bounds;
}

export function intersect(a: Bounds, b: Bounds): Bounds {
  if (a === UNBOUNDED) return b;
  if (b === UNBOUNDED) return a;
  return { start: Math.max(a.start, b.start), end: Math.min(a.end, b.end) };
}

/** The nominal times of another schedule from `start` to `end`. */
class BoundedSchedule implements CompiledSchedule {
  constructor(
    private readonly inner: CompiledSchedule,
    private readonly bounds: Bounds,
  ) {}

  next(after: number): number | undefined {
    const time = this.inner.next(Math.max(after, this.bounds.start - 1));
    return time !== undefined && time <= this.bounds.end ? time : undefined;
  }

  latest(at: number): number | undefined {
    const time = this.inner.latest(Math.min(at, this.bounds.end));
    return time !== undefined && time >= this.bounds.start ? time : undefined;
  }
}

export function bounded(inner: CompiledSchedule, bounds: Bounds): CompiledSchedule {
  return bounds === UNBOUNDED ? inner : new BoundedSchedule(inner, bounds);
}
