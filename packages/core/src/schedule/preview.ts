import { assertOptions, assertWhole, roundedInstant } from "../options.js";
import { formatInstant } from "../words/times.js";
import { DAY, HOUR } from "./civil.js";
import { type Member, membersOf } from "./compile.js";
import { excluderAt, GAVE_UP } from "./exclude/excluding-schedule.js";
import { delayOf } from "./interval/delay.js";
import { dueOf } from "./jitter.js";
import type { Instant } from "./text/instant.js";
import { localText, wallText } from "./text/local.js";
import type { Schedule, ScheduleContext } from "./types.js";
import { requireZone } from "./zone/names.js";
import { changesOf, firstInstant, type Zone, zoneOf } from "./zone/offsets.js";

export interface PreviewOptions {
  /** The times are strictly after it: ISO 8601 with an offset, a `Date`, or epoch milliseconds. */
  readonly from: Instant;
  /** 0 to 10,000. Default 5. */
  readonly count?: number | undefined;
  readonly seed?: string | undefined;
  readonly context?: ScheduleContext | undefined;
  /** Zone of the local texts; default that of the schedule, or UTC if its members differ. */
  readonly timezone?: string | undefined;
}

export interface PreviewNote {
  /** Stable, for programs: `DAY_LENGTH`, `MOVED`, `LOST`, `REPEATED`, `EXCLUDED`; for a whole preview: `RUN_LENGTH`, `GAVE_UP`. */
  readonly code: string;
  readonly text: string;
}

/** UTC ms, and as ISO 8601: in UTC, and with the offset of that day. */
export interface PreviewInstant {
  readonly time: number;
  readonly utc: string;
  readonly local: string;
}

export interface PreviewTime extends PreviewInstant {
  /** Due time; only if there is a jitter. */
  readonly due?: PreviewInstant;
  readonly notes: readonly PreviewNote[];
}

export interface ExcludedTime extends PreviewInstant {
  /** The exclusion as written, or the name of its calendar. */
  readonly by: string;
}

export interface SchedulePreview {
  readonly timezone: string;
  readonly times: readonly PreviewTime[];
  /** The first hundred times in between that exclusions removed. */
  readonly excluded: readonly ExcludedTime[];
  /** No times follow `times`: they are the last ones, or `maxRuns` of them, or the search gave up (see `notes`). */
  readonly exhausted: boolean;
  /** Notes about the whole preview. */
  readonly notes: readonly PreviewNote[];
}

const RUN_LENGTH = { code: "RUN_LENGTH", text: "the times assume runs of no length" };

const GIVEN_UP = {
  code: "GAVE_UP",
  text: "more times in a row are excluded than one search passes over: what follows them is not found",
};

type Taken = Pick<ExcludedTime, "time" | "by">;

const MAX_COUNT = 10_000;
const MAX_EXCLUDED = 100;
/** Number of excluded times that a note names. */
const NAMED = 3;

/**
 * The next times of a schedule that has not run yet, as texts for people, with notes about special ones.
 * @throws as `compileSchedule`; `INVALID_TIMEZONE` for `timezone`; `INVALID_OPTION`
 */
export function previewSchedule(schedule: Schedule, options: PreviewOptions): SchedulePreview {
  assertOptions(options, ["from", "count", "seed", "context", "timezone"]);
  const { count: asked = 5, seed = "", context = {} } = options;
  assertWhole(asked, "count", 0, MAX_COUNT);
  const from = roundedInstant(options.from, "from");
  const members = membersOf(schedule, { seed, context, lenient: false });
  const shown = zoneOfMembers(members);
  const timezone = options.timezone === undefined ? shown : requireZone(options.timezone, "timezone");
  const zone = zoneOf(timezone);
  const instant = (time: number) => ({ time, utc: formatInstant(time), local: localText(time, zone) });
  const times: PreviewTime[] = [];
  const excluded: ExcludedTime[] = [];
  const maxRuns = schedule.maxRuns ?? Number.POSITIVE_INFINITY;
  const count = Math.min(asked, maxRuns);
  const compiled = { next: (after: number) => nextOf(members, after) };
  let time = compiled.next(from);
  for (let before = from; time !== undefined && times.length < count; time = compiled.next(time)) {
    const taken = takenBetween(members, before, time).map((one) => ({ ...instant(one.time), by: one.by }));
    excluded.push(...taken.slice(0, MAX_EXCLUDED - excluded.length));
    const due = schedule.jitter === undefined ? {} : { due: instant(dueOf(schedule, seed, compiled, time)) };
    const lost = lostBetween(members, before, time, " before it");
    times.push({ ...instant(time), ...due, notes: [...lost, ...notesOf(members, time, taken)] });
    before = time;
  }
  const spent = times.length === maxRuns;
  const last = times.at(-1)?.time ?? from;
  if (time === undefined && !spent) {
    const rest = takenBetween(members, last, Number.POSITIVE_INFINITY);
    const room = rest.slice(0, MAX_EXCLUDED - excluded.length);
    excluded.push(...room.map((one) => ({ ...instant(one.time), by: one.by })));
  }
  const gaveUp = members.some(({ excluding }) => excluding?.search(last) === GAVE_UP);
  const notes = [...(delayOf(schedule) === undefined ? [] : [RUN_LENGTH]), ...(gaveUp ? [GIVEN_UP] : [])];
  return { timezone, times, excluded, exhausted: time === undefined || spent, notes };
}

/** UTC if they differ. */
export function zoneOfMembers(members: readonly Member[]): string {
  const zones = new Set(members.map(({ timetable }) => timetable.zone));
  return zones.size === 1 ? members[0]!.timetable.zone : "UTC";
}

export function nextOf(members: readonly Member[], after: number): number | undefined {
  const found = members.map(({ compiled }) => compiled.next(after)).filter((time) => time !== undefined);
  return found.length === 0 ? undefined : Math.min(...found);
}

export function takenBetween(members: readonly Member[], after: number, to: number): Taken[] {
  const taken = new Map<number, string>();
  for (const { before, excluders } of members) {
    if (excluders.length === 0) continue;
    let time = before.next(after);
    for (let n = 0; n < MAX_EXCLUDED && time !== undefined && time < to; n++, time = before.next(time)) {
      const by = excluderAt(excluders, time)?.label;
      if (by !== undefined && !taken.has(time)) taken.set(time, by);
    }
  }
  return [...taken]
    .sort(([a], [b]) => a - b)
    .slice(0, MAX_EXCLUDED)
    .map(([time, by]) => ({ time, by }));
}

/** Times that clock changes skip, and that are not made up for. */
export function lostBetween(
  members: readonly Member[],
  after: number,
  to: number,
  where = "",
): PreviewNote[] {
  const walls = new Set<string>();
  for (const { timetable, excluders } of members) {
    const { lostBefore } = timetable;
    if (lostBefore === undefined) continue;
    for (const segment of changesOf(zoneOf(timetable.zone), after, to)) {
      const lost = lostBefore(segment);
      const excluded = excluderAt(excluders, segment.start) !== undefined;
      if (lost !== undefined && !excluded) walls.add(wallText(lost));
    }
  }
  const skipped = [...walls].slice(0, NAMED).join(", ");
  return walls.size === 0 ? [] : [{ code: "LOST", text: `the clock skips ${skipped}${where}: no run then` }];
}

export function notesOf(
  members: readonly Member[],
  time: number,
  taken: readonly ExcludedTime[],
): PreviewNote[] {
  const notes: PreviewNote[] = [];
  const member = members.find(({ compiled }) => compiled.latest(time) === time) ?? members[0]!;
  const zone = zoneOf(member.timetable.zone);
  if (zone !== undefined) notes.push(...clockNotes(time, zone, member));
  if (taken.length > 0) {
    const texts = taken.slice(0, NAMED).map(({ local, by }) => `${local} (${by})`);
    const more = taken.length - texts.length;
    const rest = more > 0 ? ` and ${more}${taken.length === MAX_EXCLUDED ? " or" : ""} more` : "";
    notes.push({ code: "EXCLUDED", text: `excluded before it: ${texts.join(", ")}${rest}` });
  }
  return notes;
}

function clockNotes(time: number, zone: Zone, { timetable }: Member): PreviewNote[] {
  const notes: PreviewNote[] = [];
  const segment = zone.at(time);
  const wall = time + segment.offset;
  const meant = timetable.wallOf?.(time) ?? wall;
  if (meant !== wall)
    notes.push({ code: "MOVED", text: `meant for ${wallText(meant)}, which the clock skips` });
  const day = Math.floor(wall / DAY) * DAY;
  const hours = (firstInstant(zone, day + DAY) - firstInstant(zone, day)) / HOUR;
  if (hours !== 24) notes.push({ code: "DAY_LENGTH", text: `this day has ${Number(hours.toFixed(2))} h` });
  const first = firstInstant(zone, wall);
  if (first < time && first + zone.at(first).offset === wall) {
    notes.push({ code: "REPEATED", text: "the second time that the clock shows this" });
  } else if (segment.end - time <= DAY) {
    const after = zone.at(segment.end);
    if (wall >= segment.end + after.offset)
      notes.push({ code: "REPEATED", text: "the first of two times that the clock shows this" });
  }
  return notes;
}
