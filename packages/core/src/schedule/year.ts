import { DAY, HOUR } from "./civil.js";
import { membersOf } from "./compile.js";
import {
  lostBetween,
  nextOf,
  notesOf,
  type PreviewNote,
  type PreviewOptions,
  takenBetween,
  zoneOfMembers,
} from "./preview.js";
import type { Schedule } from "./types.js";
import { changesOf, firstInstant, segmentAt, zoneOf } from "./zone/offsets.js";

/** Days of a year, the last one included. */
const DAYS = 366;
/** Most times of a day that are counted: one more than each hour has. */
const MOST = 25;

/** A day of a schedule, by the calendar of its zone. */
export interface YearDay {
  /** UTC ms of its first instant. */
  readonly start: number;
  /** Number of its times; 25: that or more. */
  readonly times: number;
  /** Number of its times that exclusions remove, at most 100, and the first exclusion's label. */
  readonly excluded: number;
  readonly by?: string;
  /** If a clock changes: the day's length, and times that are lost, moved or doubled. */
  readonly notes: readonly PreviewNote[];
}

/** The days from that of `from`, one after the other, in the zone of the schedule; UTC if its members differ. */
export function* previewYear(
  schedule: Schedule,
  { from, seed = "", context = {} }: Pick<PreviewOptions, "seed" | "context"> & { readonly from: number },
): Generator<YearDay> {
  const members = membersOf(schedule, { seed, context, lenient: false });
  const zone = zoneOf(zoneOfMembers(members));
  const zones = new Set(members.map(({ timetable }) => zoneOf(timetable.zone)));
  const midnight = (wall: number) => (zone === undefined ? wall : firstInstant(zone, wall));
  const first = Math.floor((from + segmentAt(zone, from).offset) / DAY) * DAY;
  let left = schedule.maxRuns ?? Number.POSITIVE_INFINITY;
  for (let day = 0; day < DAYS; day++) {
    const [start, end] = [midnight(first + day * DAY), midnight(first + (day + 1) * DAY)];
    const changes = [...zones].some((one) => changesOf(one, start - 1, end - 1).length > 0);
    const found: PreviewNote[] = changes ? lostBetween(members, start - 1, end - 1) : [];
    let times = 0;
    for (
      let time = nextOf(members, start - 1);
      time !== undefined && time < end && times < Math.min(MOST, left);
    ) {
      times += 1;
      if (changes) found.push(...notesOf(members, time, []).filter(({ code }) => code !== "DAY_LENGTH"));
      time = nextOf(members, time);
    }
    left -= times;
    const taken = left > 0 ? takenBetween(members, start - 1, end) : [];
    const hours = (end - start) / HOUR;
    const length = { code: "DAY_LENGTH", text: `this day has ${Number(hours.toFixed(2))} h` };
    // The times of a schedule of each minute all have the same note.
    const notes = new Map([...(hours === 24 ? [] : [length]), ...found].map((note) => [note.text, note]));
    const by = taken[0]?.by;
    yield {
      start,
      times,
      excluded: taken.length,
      ...(by && { by }),
      notes: [...notes.values()].slice(0, 10),
    };
  }
}
