import { relative } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { fullTime, isoTime, shortTime, useNow, useZone } from "../lib/time.js";
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
  return (
    <time className="nowrap" dateTime={isoTime(at)} title={`${fullTime(at, zone)} · ${isoTime(at)}`}>
      {relative(at > now ? now + length : now - length, now)}
    </time>
  );
}

/** The schedule in words, with the time of one that happens once as the page shows times. */
export function ScheduleText({ of: { schedule, humanized } }: { of: Pick<Task, "schedule" | "humanized"> }) {
  const at = "at" in schedule ? Date.parse(String(schedule.at)) : Number.NaN;
  if (Number.isNaN(at)) return humanized.replace(words.fromEpoch, "");
  return (
    <>
      {words.once} <Time at={at} />
    </>
  );
}
