import type { Display } from "../display.js";
import { formatInstant, whole } from "./times.js";

/** As answers of operations have it: fields may be undefined. */
type Loose = { readonly [Field in keyof Display]?: Display[Field] | undefined } & Pick<Display, "code">;

/**
 * The present state of a task in a few words: `runs`, `waits for a worker (none for pdf)`, `held until 2026-11-29T08:00:00Z by
 * carol`, `fails since 2026-11-28T08:33:00Z (12 in a row)`, `due 2026-12-14T09:00:00Z`.
 *
 * @param time default: ISO 8601 in UTC
 */
export function displayText(display: Loose, time: (at: number) => string = formatInstant): string {
  const { code, type, by, until, since, failures = 0, next } = display;
  const of = (word: string, at: number | undefined) =>
    at === undefined ? "" : ` ${word} ${time(whole(at))}`;
  const author = by === undefined ? "" : ` by ${by}`;
  const texts: Record<Display["code"], string> = {
    runs: "runs",
    "waits-for-attempt": `waits for its next attempt${of("at", until)}`,
    "waits-for-queue": `waits for its queue (paused${author})`,
    "waits-for-worker": `waits for a worker${type === undefined ? "" : ` (none for ${type})`}`,
    moving: "held by a move",
    paused: `paused${author}`,
    held: `held${of("until", until)}${author}`,
    over: failures > 0 ? "over, failed" : "over",
    fails:
      failures > 1
        ? `fails${of("since", since)} (${failures.toLocaleString("en")} in a row)`
        : `failed${of("at", since)}`,
    overdue: `overdue${of("since", since)}`,
    due: next === undefined ? "due" : `due ${time(whole(next))}`,
    "never-due": "never due",
  };
  return texts[code];
}
