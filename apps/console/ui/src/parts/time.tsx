import { duration, fullTime, isoTime, shortTime, useNow, useZone } from "../lib/time.js";
import { words } from "../words.js";

/** A time of day, with the full time and UTC in its title. */
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

const FAR_MS = 600_000;

/** `in 4 min`, or `12 s ago`. */
export function Relative({ at }: { at: number }) {
  const zone = useZone();
  const now = useNow();
  // Counts in whole seconds, and in minutes for times far away.
  const away = Math.abs(at - now);
  const step = away < FAR_MS ? 1_000 : 60_000;
  const length = Math.floor(away / step) * step;
  const text =
    length === 0 ? words.justNow : at > now ? words.inTime(duration(length)) : words.ago(duration(length));
  return (
    <time className="nowrap" dateTime={isoTime(at)} title={`${fullTime(at, zone)} · ${isoTime(at)}`}>
      {text}
    </time>
  );
}
