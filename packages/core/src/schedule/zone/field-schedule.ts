import { HOUR, MAX_TIME } from "../civil.js";
import { type Fields, matchesLocal, nextLocal, prevLocal } from "../fields/fields.js";
import type { CompiledSchedule } from "../types.js";
import type { DstRule } from "./dst.js";
import { landing } from "./landing.js";
import { MAX_CHANGE, MAX_OFFSET, type Segment, type Zone } from "./offsets.js";

/** Cron and calendar schedules: sets of local values in a zone. `zone` undefined is UTC. */
export class FieldSchedule implements CompiledSchedule {
  constructor(
    private readonly fields: Fields,
    private readonly zone: Zone | undefined,
    private readonly rule: DstRule,
  ) {}

  /**
   * The intended wall clock time of an occurrence: that of its instant, or, if it runs late because a gap
   * skipped its time, the first such time.
   */
  wallOf(occurrence: number): number {
    if (this.zone === undefined) return occurrence;
    const segment = this.zone.at(occurrence);
    const wall = occurrence + segment.offset;
    if (occurrence - segment.start >= HOUR || occurrence !== this.#late(segment)) return wall;
    if (matchesLocal(this.fields, wall)) return wall;
    return nextLocal(this.fields, segment.start + segment.before);
  }

  /**
   * The first wall clock time that the gap before a segment skips, if such times do not run at all, and no other one follows within
   * an hour.
   */
  lostBefore(segment: Segment): number | undefined {
    const { start, offset, before } = segment;
    if (offset <= before || this.#late(segment) > Number.NEGATIVE_INFINITY) return undefined;
    const wall = nextLocal(this.fields, start + before);
    const back = start + offset;
    return wall < back && nextLocal(this.fields, back) - back >= HOUR ? wall : undefined;
  }

  next(after: number): number | undefined {
    if (!(Math.abs(after) <= MAX_TIME)) {
      if (after !== Number.NEGATIVE_INFINITY) return undefined;
      after = -MAX_TIME;
    }
    const base = Math.floor(after) + 1;
    const found = this.zone === undefined ? nextLocal(this.fields, base) : this.#next(base, this.zone);
    return found <= MAX_TIME ? found : undefined;
  }

  latest(at: number): number | undefined {
    if (!(Math.abs(at) <= MAX_TIME)) {
      if (at !== Number.POSITIVE_INFINITY) return undefined;
      at = MAX_TIME;
    }
    const base = Math.floor(at);
    const found = this.zone === undefined ? prevLocal(this.fields, base) : this.#latest(base, this.zone);
    return found >= -MAX_TIME ? found : undefined;
  }

  /** The first occurrence at or after `from`, segment by segment, or Infinity. */
  #next(from: number, zone: Zone): number {
    let cursor = from;
    for (;;) {
      const segment = zone.at(cursor);
      if (cursor - segment.start < HOUR) {
        const late = this.#late(segment);
        if (cursor <= late) return late;
      }
      const wall = Math.max(cursor + segment.offset, this.#firstWall(segment));
      const local = nextLocal(this.fields, wall);
      if (local < segment.end + segment.offset) return local - segment.offset;
      if (segment.end === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
      // No wall clock from `wall` to `local` matches. Times before `wall` can still come again when the clock goes
      // back soon; later than that, everything up to the neighbourhood of `local` can be passed over.
      const repeats = this.rule.overlap === "both" && segment.end - cursor <= MAX_CHANGE;
      if (local === Number.POSITIVE_INFINITY && !repeats) return local;
      cursor = repeats ? segment.end : Math.max(segment.end, local - MAX_OFFSET);
    }
  }

  /** The last occurrence at or before `to`, or -Infinity. */
  #latest(to: number, zone: Zone): number {
    let cursor = to;
    for (;;) {
      const segment = zone.at(cursor);
      const first = Math.max(segment.start + segment.offset, this.#firstWall(segment));
      const wall = cursor + segment.offset;
      let local = Number.POSITIVE_INFINITY;
      if (wall >= first) {
        local = prevLocal(this.fields, wall);
        if (local >= first) return local - segment.offset;
      }
      const late = this.#late(segment);
      if (late <= cursor && late >= segment.start) return late;
      if (segment.start === Number.NEGATIVE_INFINITY) return Number.NEGATIVE_INFINITY;
      const repeats = this.rule.overlap === "both" && cursor - segment.start <= MAX_CHANGE;
      if (local === Number.NEGATIVE_INFINITY && !repeats) return local;
      cursor = repeats ? segment.start - 1 : Math.min(segment.start - 1, local + MAX_OFFSET);
    }
  }

  /** First wall clock time of a segment that counts. Leaves out an overlap's second pass if that does not count. */
  #firstWall(segment: Segment): number {
    if (this.rule.overlap === "both" || segment.before <= segment.offset) return Number.NEGATIVE_INFINITY;
    return segment.start + segment.before;
  }

  /** Time at which the times skipped by the gap before this segment run: within its first hour, or -Infinity. */
  #late({ start, offset, before }: Segment): number {
    const gap = offset - before;
    if (gap <= 0 || gap > this.rule.gap) return Number.NEGATIVE_INFINITY;
    if (this.rule.byHour) return landing(this.fields, start + before, start + offset) - offset;
    const lost = nextLocal(this.fields, start + before) < start + offset;
    return lost ? start : Number.NEGATIVE_INFINITY;
  }
}
