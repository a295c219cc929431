import { describe, expect, test } from "vitest";
import { compileSchedule, type DstChoice, type Schedule } from "../../src/schedule/index.js";

/*
 * Compares the engine with a minute-by-minute simulation, in 20 zones around their transitions. The simulation knows
 * nothing of fields or segments: it asks Intl for the wall clock of each minute in which that may change, and acts as
 * crond would.
 */

const ZONES = [
  "Europe/Paris",
  "Europe/Dublin",
  "Europe/London",
  "America/New_York",
  "America/St_Johns",
  "America/Havana",
  "America/Santiago",
  "America/Sao_Paulo",
  "America/Nuuk",
  "Africa/Casablanca",
  "Africa/Cairo",
  "Asia/Beirut",
  "Asia/Tehran",
  "Asia/Almaty",
  "Asia/Pyongyang",
  "Australia/Lord_Howe",
  "Antarctica/Troll",
  "Antarctica/Casey",
  "Pacific/Chatham",
  "Pacific/Apia",
];
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// Wall clocks are read millions of times; a `Date` for each would take most of the time of these tests.
const minuteOf = (wall: number) => Math.floor(wall / MINUTE) % 60;
const hourOf = (wall: number) => Math.floor(wall / HOUR) % 24;
/** The epoch began on a Thursday. */
const weekdayOf = (wall: number) => (Math.floor(wall / DAY) + 4) % 7;

interface Minute {
  utc: number;
  /** The wall clock as if it were UTC. */
  wall: number;
}

const offsetOf = ({ utc, wall }: Minute) => wall - utc;

function clockOf(zone: string): (utc: number) => number {
  const format = new Intl.DateTimeFormat("sv-SE", {
    timeZone: zone,
    dateStyle: "short",
    timeStyle: "medium",
  });
  return (utc) => Date.parse(`${format.format(utc).replace(" ", "T")}Z`);
}

/** Of 2024, or of 2011 if the clocks of a zone did not change then. Apia left out a day in 2011. */
function changes(zone: string): Minute[][] {
  const newer = windows(zone, 2024);
  return newer.length > 0 && zone !== "Pacific/Apia" ? newer : [...windows(zone, 2011), ...newer];
}

/** The minutes from some hours before to some hours after each UTC day with a transition. */
function windows(zone: string, year: number): Minute[][] {
  const wallOf = clockOf(zone);
  const found: Minute[][] = [];
  const offsetAt = (utc: number) => wallOf(utc) - utc;
  for (let day = Date.UTC(year, 0, 1); day < Date.UTC(year + 1, 0, 1); day += DAY) {
    if (offsetAt(day) === offsetAt(day + DAY)) continue;
    const minutes: Minute[] = [];
    for (let hour = day - 12 * HOUR; hour < day + 36 * HOUR; hour += HOUR) {
      const offset = offsetAt(hour);
      const steady = offsetAt(hour + HOUR - MINUTE) === offset;
      for (let utc = hour; utc < hour + HOUR; utc += MINUTE)
        minutes.push({ utc, wall: utc + (steady ? offset : offsetAt(utc)) });
    }
    found.push(minutes);
  }
  return found;
}

type Matches = (wall: number) => boolean;

interface Sample {
  cron: string;
  calendar: string;
  matches: Matches;
}

const FIXED: ReadonlyArray<[minutes: number[], hours: number[]]> = [
  [[0], [0]],
  [[30], [0]],
  [[30], [1]],
  [[15, 45], [2]],
  [[0], [0, 1, 2, 3]],
  [
    [0, 20, 40],
    [1, 2, 3],
  ],
  [[59], [23]],
  [
    [5, 30],
    [0, 12, 23],
  ],
];

const samples: Sample[] = FIXED.flatMap(([minutes, hours]) =>
  [undefined, 0, 5].map((weekday) => ({
    cron: `${minutes.join()} ${hours.join()} * * ${weekday ?? "*"}`,
    calendar: `${weekday === undefined ? "" : weekday === 0 ? "Sun " : "Fri "}${hours.join()}:${minutes.join()}`,
    matches: (wall: number) => {
      const day = weekday === undefined || weekdayOf(wall) === weekday;
      return day && hours.includes(hourOf(wall)) && minutes.includes(minuteOf(wall));
    },
  })),
);

const WILD: ReadonlyArray<[cron: string, matches: Matches]> = [
  ["* * * * *", () => true],
  ["*/20 * * * *", (wall) => minuteOf(wall) % 20 === 0],
  ["30 * * * *", (wall) => minuteOf(wall) === 30],
  ["* 2 * * *", (wall) => hourOf(wall) === 2],
  ["15 */2 * * *", (wall) => hourOf(wall) % 2 === 0 && minuteOf(wall) === 15],
];

const RECURRING: ReadonlyArray<[calendar: string, matches: Matches]> = [
  ["minutely", () => true],
  ["*:0/20", (wall) => minuteOf(wall) % 20 === 0],
  ["Sun *:30", (wall) => weekdayOf(wall) === 0 && minuteOf(wall) === 30],
  ["2:*", (wall) => hourOf(wall) === 2],
];

/**
 * crond: minutes of a fixed job that are lost in a jump of up to three hours run at once; minutes seen before do not
 * run again.
 */
function crond(minutes: readonly Minute[], matches: Matches): number[] {
  const fires: number[] = [];
  let seen = minutes[0]!.wall - MINUTE;
  for (const { utc, wall } of minutes) {
    if (wall <= seen) continue;
    const lost = wall - seen - MINUTE;
    let fire = false;
    for (let w = lost > 3 * HOUR ? wall : seen + MINUTE; w <= wall; w += MINUTE) fire ||= matches(w);
    if (fire) fires.push(utc);
    seen = wall;
  }
  return fires;
}

/** Both halves of a chosen rule, computed only from the wall clock of each minute. */
function chosen(
  minutes: readonly Minute[],
  matches: Matches,
  { gap, overlap }: Required<DstChoice>,
): number[] {
  const fires: number[] = [];
  let seen = minutes[0]!.wall - MINUTE;
  let before = seen;
  for (const { utc, wall } of minutes) {
    let fire = matches(wall) && (overlap === "both" || wall > seen);
    if (gap === "run-after") for (let w = before + MINUTE; w < wall; w += MINUTE) fire ||= matches(w);
    if (fire) fires.push(utc);
    seen = Math.max(seen, wall);
    before = wall;
  }
  return fires;
}

/**
 * Compares `next` and `latest` at each fire and in between, from the first fire to the last: every 11 minutes within six
 * hours of a transition, every 101 minutes elsewhere.
 */
function compare(name: string, minutes: readonly Minute[], fires: readonly number[], schedule: Schedule) {
  const compiled = compileSchedule(schedule);
  const wrong: string[] = [];
  const turn = minutes.findIndex((minute, n) => n > 0 && offsetOf(minute) !== offsetOf(minutes[n - 1]!));
  let i = 0;
  for (const [n, { utc }] of minutes.entries()) {
    const fired = i;
    while (i < fires.length && fires[i]! <= utc) i++;
    if (fired === i && n % (Math.abs(n - turn) <= 360 ? 11 : 101) !== 0) continue;
    const next = fires[i];
    const latest = fires[i - 1];
    if (next !== undefined && compiled.next(utc) !== next) wrong.push(`next ${new Date(utc).toISOString()}`);
    if (latest !== undefined && compiled.latest(utc) !== latest)
      wrong.push(`latest ${new Date(utc).toISOString()}`);
  }
  expect({ name, wrong: wrong.slice(0, 5) }).toEqual({ name, wrong: [] });
}

const windowsOf = new Map(ZONES.map((zone) => [zone, changes(zone)]));

describe.each(ZONES)("%s", (zone) => {
  const all = windowsOf.get(zone)!;

  test("cron with fixed times runs skipped times once and repeated times once", () => {
    for (const minutes of all) {
      for (const { cron, matches } of samples) {
        compare(cron, minutes, crond(minutes, matches), { cron, timezone: zone });
      }
    }
  });

  test("cron with wildcards follows elapsed time", () => {
    for (const minutes of all) {
      for (const [cron, matches] of WILD) {
        const fires = minutes.filter(({ wall }) => matches(wall)).map(({ utc }) => utc);
        compare(cron, minutes, fires, { cron, timezone: zone });
      }
    }
  });

  test("an explicit rule overrides the default of both syntaxes", () => {
    const calendar = ({ calendar: text, matches }: Sample): [Schedule, Matches] => [
      { calendar: text },
      matches,
    ];
    const some: Array<[Schedule, Matches]> = [
      ...WILD.map(([cron, matches]): [Schedule, Matches] => [{ cron }, matches]),
      ...samples.filter((_, i) => i % 5 === 0).map(calendar),
      ...samples
        .filter((_, i) => i % 5 === 2)
        .map(({ cron, matches }): [Schedule, Matches] => [{ cron }, matches]),
    ];
    for (const minutes of all) {
      for (const [schedule, matches] of some) {
        for (const gap of ["run-after", "skip"] as const) {
          for (const overlap of ["first", "both"] as const) {
            const dst = { gap, overlap };
            const fires = chosen(minutes, matches, dst);
            compare(JSON.stringify({ ...schedule, dst }), minutes, fires, {
              ...schedule,
              timezone: zone,
              dst,
            } as Schedule);
          }
        }
      }
    }
  });

  test("calendar leaves out skipped times, and runs repeated times once unless it recurs in each hour", () => {
    const once = { gap: "skip", overlap: "first" } as const;
    for (const minutes of all) {
      for (const { calendar, matches } of samples)
        compare(calendar, minutes, chosen(minutes, matches, once), { calendar, timezone: zone });
      for (const [calendar, matches] of RECURRING) {
        const fires = minutes.filter(({ wall }) => matches(wall)).map(({ utc }) => utc);
        compare(calendar, minutes, fires, { calendar, timezone: zone });
      }
    }
  });
});

test("the zones have transitions", () => {
  expect([...windowsOf.values()].filter(({ length }) => length > 0).length).toBeGreaterThanOrEqual(16);
});
