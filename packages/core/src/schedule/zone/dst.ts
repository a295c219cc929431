import { HOUR } from "../civil.js";
import type { DstChoice } from "../types.js";

/** Rule for local times that a zone skips or repeats. */
export interface DstRule {
  /** The longest gap, in ms, whose times run once, at the first instant after it. Those of longer ones are lost. */
  readonly gap: number;
  /** Times of a gap run when cron-parser runs them, see `landing`, instead of at the first instant after it. */
  readonly byHour?: true;
  /** The pass of repeated times that counts, never depending on the instant from which a search begins. */
  readonly overlap: "first" | "both";
}

/**
 * Cron whose minutes or hours start with `*`, and calendar events with all minutes, all hours, or some that recur
 * (`0/20`): each instant whose wall clock matches.
 */
export const ELAPSED: DstRule = { gap: 0, overlap: "both" };
/** All other cron; cronie regards jumps of more than three hours as a corrected clock. */
export const FIXED: DstRule = { gap: 3 * HOUR, overlap: "first" };
/** The dialect of cron-parser, unless it fires in each hour of the day: that is `ELAPSED`. */
export const BY_HOUR: DstRule = { gap: Number.POSITIVE_INFINITY, overlap: "first", byHour: true };
/** All other calendar events. A timer of systemd that goes through an overlap keeps to the first pass with each event. */
export const CALENDAR: DstRule = { gap: 0, overlap: "first" };

/** The rule of a syntax, with the user's choices. A chosen `run-after` holds for gaps of any length. */
export function dstRule(usual: DstRule, chosen: DstChoice | undefined): DstRule {
  const overlap = chosen?.overlap ?? usual.overlap;
  const gap = chosen?.gap === undefined ? usual.gap : chosen.gap === "skip" ? 0 : Number.POSITIVE_INFINITY;
  return gap === usual.gap && overlap === usual.overlap ? usual : { gap, overlap };
}
