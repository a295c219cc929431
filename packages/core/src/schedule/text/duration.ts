import { CarillonError, quote } from "../../errors.js";

/** A duration: text with units, `"90s"`, `"1h30m"`, `"PT5M"`; or whole milliseconds, `90_000`. */
export type Duration = string | number;

/** The longest duration, in ms: ten years of 366 days. */
export const MAX_DURATION = 3_660 * 86_400_000;

const MAX_LENGTH = 64;
const UNITS: Readonly<Record<string, number>> = {
  w: 604_800_000,
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
};
const PARTS = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/;
const ISO_WEEKS = /^P(\d+)W$/;
const ISO = /^P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/;
const REMEDY =
  "Write whole numbers with units, largest first: 90s, 1h30m, 1d12h (ms, s, m, h, d, w), or ISO 8601: PT5M.";

/**
 * Milliseconds of a duration: `90s`, `1h30m`, `2w`, or ISO 8601 `PT5M`, `P1D`; a number is milliseconds. A day is 24 hours.
 * At most {@link MAX_DURATION}, at least 1 ms.
 * @param field the input at fault, for the error
 * @throws `INVALID_DURATION` for anything else: zero, negative numbers, fractions, months and years
 */
export function parseDuration(text: Duration, field?: string): number {
  const fault = (what: string, remedy: string) =>
    new CarillonError("INVALID_DURATION", what, field === undefined ? { remedy } : { field, remedy });
  if (typeof text === "number") {
    if (Number.isInteger(text) && text >= 1 && text <= MAX_DURATION) return text;
    throw fault(
      `${text} is not a duration.`,
      `Give whole milliseconds, from 1 to ten years, or a text with a unit: "90s".`,
    );
  }
  if (typeof text !== "string") throw fault(`${quote(text)} is not a duration.`, REMEDY);
  if (text.length > MAX_LENGTH) throw fault(`The duration is longer than ${MAX_LENGTH} characters.`, REMEDY);
  const parts = PARTS.exec(text);
  const weeks = ISO_WEEKS.exec(text);
  const iso = ISO.exec(text);
  const total =
    text === "" || text === "P"
      ? undefined
      : parts
        ? sum(parts.slice(1), ["w", "d", "h", "m", "s", "ms"])
        : weeks
          ? sum(weeks.slice(1), ["w"])
          : iso
            ? sum(iso.slice(1), ["d", "h", "m", "s"])
            : undefined;
  if (total === undefined) throw fault(...explain(text));
  if (total === 0) throw fault(`${quote(text)} is zero.`, "Give a duration of at least 1ms.");
  if (total > MAX_DURATION)
    throw fault(`${quote(text)} is longer than ten years.`, "Give a shorter duration.");
  return total;
}

function sum(counts: ReadonlyArray<string | undefined>, units: readonly string[]): number {
  return counts.reduce((total, count, i) => total + Number(count ?? 0) * UNITS[units[i]!]!, 0);
}

const WORDS =
  /(\d{1,12})\s*(milliseconds?|millis?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])/gi;

/** The duration that another spelling most likely means: `30 minutes`, `10min`, `1 Hour`, `every 5m`. Undefined if none. */
export function nearestDuration(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const counts = [...text.matchAll(WORDS)];
  const rest = text.replace(WORDS, "").replace(/\b(?:and|each|every|in)\b/gi, "");
  if (counts.length === 0 || /[^\s,]/.test(rest)) return undefined;
  const ms = counts.reduce((sum, [, count, word]) => sum + Number(count) * UNITS[unitOf(word!)]!, 0);
  return ms >= 1 && ms <= MAX_DURATION ? formatDuration(ms) : undefined;
}

function unitOf(word: string): string {
  const lower = word.toLowerCase();
  return lower.startsWith("mil") || lower.startsWith("ms") ? "ms" : lower.slice(0, 1);
}

/** The fault and its remedy. */
function explain(text: string): [what: string, remedy: string] {
  if (text.trim() === "") return ["The duration is empty.", REMEDY];
  const near = nearestDuration(text);
  if (near !== undefined) return [`${quote(text)} is not a duration.`, `Did you mean ${near}?`];
  if (/^\d+$/.test(text)) {
    const count = text.slice(0, 12);
    return [
      `${quote(text)} has no unit.`,
      `Write ${count}ms for milliseconds, ${count}s for seconds, or m, h, d, w.`,
    ];
  }
  if (/^\s*-|\d-\d|P-/.test(text)) return [`${quote(text)} is negative.`, "Give a positive duration."];
  if (/^P[\d.]*\d+[YM]|^P\d+Y|\d\s*(?:y|yr|years?|mo|months?)(?![a-z])/i.test(text)) {
    return [
      `${quote(text)} counts months or years, whose length depends on the date.`,
      "Use days or weeks. Only the every of a schedule takes them: 1 month, 2 years, P1M.",
    ];
  }
  if (/\d[.,]\d/.test(text))
    return [`${quote(text)} has a fraction.`, "Use a smaller unit: 1h30m rather than 1.5h."];
  return [`${quote(text)} is not a duration.`, REMEDY];
}

/** A duration as it is stored: text stays as it was written. */
export function durationText(duration: Duration): string {
  return typeof duration === "number" ? formatDuration(duration) : duration;
}

/** The shortest text of whole milliseconds that {@link parseDuration} reads back: `1h30m`, `1d`, `250ms`; 0 is `0s`. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`;
  let rest = Math.round(ms);
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms"]) {
    const size = UNITS[unit]!;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text === "" ? "0s" : text;
}
