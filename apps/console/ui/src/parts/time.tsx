import { relative } from "@carillon/ops/words";
import { fullTime, isoTime, shortTime, useNow, useZone } from "../lib/time.js";

/** A time of day, with the full time and UTC in its title. `after`: the time that stands before it; the day is left out if it is the same. */
export function Time({ at, after }: { at: number; after?: number }) {
  const timeZone = useZone();
  const now = useNow();
  return (
    <time className="nowrap" dateTime={isoTime(at)} title={`${fullTime(at, timeZone)} · ${isoTime(at)}`}>
      {shortTime(at, timeZone, after ?? now)}
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
  return (
    <time className="nowrap" dateTime={isoTime(at)} title={`${fullTime(at, zone)} · ${isoTime(at)}`}>
      {relative(at > now ? now + length : now - length, now)}
    </time>
  );
}

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** A text of the server. The times in it are shown as the page shows times. */
export function Prose({ of }: { of: string }) {
  return of.split(INSTANT).map((part, i) => {
    const at = i % 2 === 0 ? Number.NaN : Date.parse(part);
    // biome-ignore lint/suspicious/noArrayIndexKey: its place is what it is
    return Number.isNaN(at) ? part : <Time key={i} at={at} />;
  });
}

/** A schedule in words, without what its title has too. */
export function ScheduleText({ of }: { of: string }) {
  return <Prose of={of.replace(", counted from the Unix epoch", "")} />;
}
