import { CarillonError, quote } from "../errors.js";
import { hashOf } from "./hash.js";
import { type Duration, formatDuration, parseDuration } from "./text/duration.js";
import type { CompiledSchedule, Schedule } from "./types.js";

const PERCENT = /^(\d{1,3})(?:\.(\d{1,2}))?%$/;

/** A parsed jitter: milliseconds, or a part of the gap to the following occurrence. */
export type Jitter = { readonly ms: number } | { readonly part: number };

/**
 * Delay with which an occurrence becomes due, in ms: at least 0 and below the jitter, always the same for one task
 * and nominal time, and spread evenly over tasks and times. It never reaches the following occurrence. For the last
 * occurrence, which has no gap, a percentage is 0.
 * @param jitter a duration (`30s`), or a percentage (`10%`) of the gap to the following occurrence
 * @param seed the task's, from `seedOf`
 * @throws `INVALID_DURATION`
 */
export function jitterOf(
  jitter: string,
  seed: string,
  nominal: number,
  following: number | undefined,
): number {
  const read = parseJitter(jitter);
  const gap = following === undefined ? Number.POSITIVE_INFINITY : following - nominal;
  const most = "ms" in read ? read.ms : gap === Number.POSITIVE_INFINITY ? 0 : read.part * gap;
  const bound = Math.max(0, Math.min(most, gap));
  // Less than the bound, because the fraction is less than 1.
  return Math.floor((hashOf(`${seed}\njitter\n${nominal}`) / 0x1_0000_0000) * bound);
}

/** @throws `INVALID_DURATION` */
export function parseJitter(text: Duration, field = "schedule.jitter"): Jitter {
  const percent = typeof text === "string" && text.length <= 64 ? PERCENT.exec(text) : null;
  if (!percent) return { ms: parseDuration(text, field) };
  const part = Number(`${percent[1]}.${percent[2] ?? "0"}`) / 100;
  if (part > 0 && part <= 1) return { part };
  throw new CarillonError("INVALID_DURATION", `${quote(text)} is not a part of the gap.`, {
    field,
    remedy: "Give more than 0% and at most 100%, or a duration such as 30s.",
  });
}

/** The shortest text of the same jitter: `90s` is `1m30s`, `10.00%` is `10%`. */
export function formatJitter(text: string): string {
  const jitter = parseJitter(text);
  return "ms" in jitter ? formatDuration(jitter.ms) : `${Number((jitter.part * 100).toFixed(2))}%`;
}

/**
 * Due time of the occurrence of a nominal time, UTC ms: later by its jitter, and before the following occurrence.
 * @param seed the task's, from `seedOf`
 * @param compiled the same schedule, for the length of the gap
 */
export function dueOf(
  schedule: Schedule,
  seed: string,
  compiled: Pick<CompiledSchedule, "next">,
  nominal: number,
): number {
  if (schedule.jitter === undefined) return nominal;
  return nominal + jitterOf(schedule.jitter, seed, nominal, compiled.next(nominal));
}
