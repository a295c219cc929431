import { HOUR } from "../civil.js";
import type { DstChoice } from "../types.js";

/** Rule for local times that a zone skips or repeats. */
export interface DstRule {
  /** The longest gap, in ms, whose times run once, at the first instant after it. Those of longer ones are lost. */
  readonly gap: number;
  /** Times of a gap run when cron-parser runs them, see `landing`, instead of at the first instant after it. */
  readonly byHour?: true;
  /**
   * The pass of repeated times that counts. `later` is systemd's rule: the smallest local time later than that of the
   * base. A second pass then counts only for a base within it, so that `next` is not monotone during that hour.
   */
  readonly overlap: "first" | "both" | "later";
}

/** Cron whose minutes or hours start with `*`: each instant whose wall clock matches. */
export const ELAPSED: DstRule = { gap: 0, overlap: "both" };
/** All other cron; cronie regards jumps of more than three hours as a corrected clock. */
export const FIXED: DstRule = { gap: 3 * HOUR, overlap: "first" };
/** The dialect of cron-parser, unless it fires in each hour of the day: that is `ELAPSED`. */
export const BY_HOUR: DstRule = { gap: Number.POSITIVE_INFINITY, overlap: "first", byHour: true };
export const CALENDAR: DstRule = { gap: 0, overlap: "later" };

/**
 * The rule of a syntax, with the user's choices. A chosen `run-after` holds for gaps of any length.
 * @param asSet for unions and exclusions, whose times may not depend on the base: an iteration through an overlap
 * finds its first pass
 */
export function dstRule(usual: DstRule, chosen: DstChoice | undefined, asSet: boolean): DstRule {
  const overlap = chosen?.overlap ?? (asSet && usual.overlap === "later" ? "first" : usual.overlap);
  const gap = chosen?.gap === undefined ? usual.gap : chosen.gap === "skip" ? 0 : Number.POSITIVE_INFINITY;
  return gap === usual.gap && overlap === usual.overlap ? usual : { gap, overlap };
}
