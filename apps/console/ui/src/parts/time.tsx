import { relative } from "@carillon/ops/words";
import { bothTimes, fullTime, isoTime, useNow, useZone } from "../lib/time.js";

interface Props {
  at: number;
  /** The time that stands before it; the day is left out if it is the same. */
  after?: number;
  /** The zone of the task whose time it is; its own time stands beside the reader's. */
  own?: string | undefined;
}

/** A time of day, with the full time and UTC in its title. */
export function Time({ at, after, own }: Props) {
  const timeZone = useZone();
  const now = useNow();
  const zones = own === undefined || own === timeZone ? [timeZone] : [timeZone, own];
  const title = [...zones.map((zone) => fullTime(at, zone)), isoTime(at)].join(" · ");
  return (
    <time className="nowrap" dateTime={isoTime(at)} title={title}>
      {bothTimes(at, timeZone, after ?? now, own)}
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
export function Prose({ of, own }: { of: string; own?: string | undefined }) {
  return of.split(INSTANT).map((part, i) => {
    const at = i % 2 === 0 ? Number.NaN : Date.parse(part);
    // biome-ignore lint/suspicious/noArrayIndexKey: its place is what it is
    return Number.isNaN(at) ? part : <Time key={i} at={at} own={own} />;
  });
}

/** A schedule in words, without what its title has too. */
export function ScheduleText({ of }: { of: string }) {
  return <Prose of={of.replace(", counted from the Unix epoch", "")} />;
}
