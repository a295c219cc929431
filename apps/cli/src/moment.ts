import type { Client } from "@carillon/sdk";
import type * as Sdk from "@carillon/sdk/schedule";
import { parseSchedule } from "./answer.js";
import { misuse } from "./failure.js";
import { HERE, localIso, readInstant } from "./times.js";

/** A time, with a note if it may differ from what was meant. */
export interface Moment {
  /** UTC ms. */
  readonly time: number;
  /** The local time in the zone, if it is not obvious. */
  readonly note?: string;
}

export interface MomentOptions {
  /** The zone of a time without an offset. */
  readonly zone: string;
  /** UTC ms; `today` is relative to it. */
  readonly now: number;
  /** The argument, for errors. */
  readonly field: string;
  /** Also accepts durations, `2h`: before now, or from now on. */
  readonly duration?: "before" | "from";
}

const DAY = 86_400_000;
const DAYS: Readonly<Record<string, number>> = { yesterday: -1, today: 0, tomorrow: 1 };
const WALL =
  /^(?:(today|yesterday|tomorrow|\d{4}-\d{2}-\d{2})(?:[T ]+|$))?(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)?$/i;
const DURATION = /^(\d+(ms|[wdhms]))+$|^P[\dT]/;
const FORMS =
  "ISO 8601 with Z or an offset, epoch milliseconds, or a time in the zone: 09:00, yesterday 09:00, 2026-01-31 09:00.";

/**
 * Reads a time: ISO 8601 with an offset, epoch ms, `now`, or a local time in the zone: `09:00`, `yesterday 09:00`,
 * `2026-01-31 09:00`, `2026-01-31`. With `options.duration`, also a duration.
 *
 * @throws `INVALID_OPTION`, `INVALID_TIMEZONE`, `INVALID_DURATION`
 */
export function readMoment(sdk: typeof Sdk, text: string, options: MomentOptions): Moment {
  assertZone(sdk, options.zone);
  const trimmed = text.trim();
  if (trimmed.toLowerCase() === "now") return { time: options.now };
  if (options.duration !== undefined && DURATION.test(trimmed)) {
    const ms = sdk.parseDuration(trimmed, options.field);
    // Rounds the end up to whole seconds: that reads better, and is never too early.
    const end = Math.ceil((options.now + ms) / 1_000) * 1_000;
    return { time: options.duration === "before" ? options.now - ms : end };
  }
  const [matched, day, clock] = WALL.exec(trimmed) ?? [];
  if (matched) return readWall(sdk, day?.toLowerCase(), clock, options);
  const time = readInstant(sdk, /^\d{12,15}$/.test(trimmed) ? Number(trimmed) : trimmed);
  if (time === undefined) throw misuse(options.field, "not a time.", `Give ${formsOf(options)}`);
  return { time };
}

/** Reads options that are times, in the zone of this machine. UTC ms; undefined: not given. @param duration also accepts these */
export async function momentsOf<Name extends string>(
  client: Client,
  texts: Readonly<Record<Name, string | undefined>>,
  duration: NonNullable<MomentOptions["duration"]>,
  zone = HERE,
): Promise<Record<Name, number | undefined>> {
  const given = Object.entries<string | undefined>(texts).filter(([, text]) => text !== undefined);
  if (given.length === 0) return {} as Record<Name, undefined>;
  const [sdk, now] = await Promise.all([import("@carillon/sdk/schedule"), client.serverTime()]);
  const read = given.map(([field, text = ""]) => [
    field,
    readMoment(sdk, text, { zone, now, field, duration }).time,
  ]);
  return Object.fromEntries(read);
}

function formsOf({ duration }: MomentOptions): string {
  if (duration === undefined) return FORMS;
  return `a duration ${duration === "before" ? "before now" : "from now"}, 2h; or ${FORMS}`;
}

/** The time zone of a schedule; UTC if it has none, or several. */
export function zoneOfSchedule(sdk: typeof Sdk, schedule: Sdk.Schedule): string {
  // Shared calendars are unknown here, and do not affect the zone.
  const bare = <Part extends { except?: unknown }>(part: Part): Part => ({ ...part, except: undefined });
  const whole = "any" in schedule ? { ...schedule, any: schedule.any.map(bare) } : schedule;
  return sdk.previewSchedule(bare(whole), { from: 0, count: 0 }).timezone;
}

function readWall(
  sdk: typeof Sdk,
  day = "today",
  clock = "00:00",
  { zone, now, field }: MomentOptions,
): Moment {
  const text = `${dateOf(day, zone, now)} ${clock.padStart(clock.indexOf(":") === 1 ? clock.length + 1 : 0, "0")}`;
  // The grammar of calendar events would read the short year 0026 as 2026.
  if (Number(text.slice(0, 4)) < 1970) throw misuse(field, `${text} is before 1970.`, `Give ${FORMS}`);
  const [first, second] = instantsOf(sdk, text, zone);
  if (first === undefined) throw misuse(field, `there is no ${text}.`, `Give ${FORMS}`);
  if (second !== undefined) {
    const other = localIso(second, zone);
    return { time: first, note: `the clock shows ${text} twice; this is the first. The second is ${other}.` };
  }
  const shown = localIso(first, zone);
  if (shown.startsWith(text.replace(" ", "T"))) return { time: first };
  return { time: first, note: `the clock skips ${text}; what comes after it is ${shown}.` };
}

function dateOf(day: string, zone: string, now: number): string {
  const ahead = DAYS[day];
  if (ahead === undefined) return day;
  const today = Date.parse(`${localIso(now, zone).slice(0, 10)}T00:00:00Z`);
  return new Date(today + ahead * DAY).toISOString().slice(0, 10);
}

/** The instants at which the clock shows this time: none, one or two, as the schedule engine computes them. */
function instantsOf(sdk: typeof Sdk, text: string, zone: string): number[] {
  const dst = { gap: "run-after", overlap: "both" };
  const schedule = sdk.scheduleSchema.safeParse({ calendar: text, timezone: zone, dst });
  // The date or time does not exist.
  if (!schedule.success) return [];
  const compiled = sdk.compileSchedule(schedule.data, "");
  // East of Greenwich, 1970 began before the epoch.
  const first = compiled.next(-DAY);
  const second = first === undefined ? undefined : compiled.next(first);
  return [first, second].filter((one) => one !== undefined);
}

function assertZone(sdk: typeof Sdk, zone: string): void {
  parseSchedule(sdk, { calendar: "*-*-*", timezone: zone });
}
