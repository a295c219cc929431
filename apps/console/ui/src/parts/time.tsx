import { duration, fullTime, isoTime, shortTime, useNow, useZone } from "../lib/time.js";
import { words } from "../words.js";

/** A time of day; the full one, and UTC, as its title. */
export function Time({ at, zone }: { at: number; zone?: string }) {
  const shown = useZone();
  const now = useNow();
  const timeZone = zone ?? shown;
  return (
    <time className="nowrap" dateTime={isoTime(at)} title={`${fullTime(at, timeZone)} · ${isoTime(at)}`}>
      {shortTime(at, timeZone, now)}
    </time>
  );
}

/** `in 4 min`, or `12 s ago`. */
export function Relative({ at }: { at: number }) {
  const zone = useZone();
  const now = useNow();
  // No milliseconds and tenths: it counts in whole seconds.
  const length = Math.floor(Math.abs(at - now) / 1_000) * 1_000;
  const text =
    length === 0 ? words.justNow : at > now ? words.inTime(duration(length)) : words.ago(duration(length));
  return (
    <time className="nowrap" dateTime={isoTime(at)} title={`${fullTime(at, zone)} · ${isoTime(at)}`}>
      {text}
    </time>
  );
}
