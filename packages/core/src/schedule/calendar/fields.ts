import { ALL_SIXTY, type Sixty, sixty } from "../fields/bits.js";
import { ALL_WEEKDAYS, type DayRule, everyDay } from "../fields/day-rule.js";
import type { Fields } from "../fields/fields.js";
import { SubSeconds } from "../fields/subseconds.js";
import { type Component, eachValue, MAX_YEAR, MICROS, MIN_YEAR } from "./chain.js";
import { type CalendarEvent, calendarFault } from "./parse.js";

const LAST_MICRO = 60 * MICROS - 1;

export function calendarFields(event: CalendarEvent): Fields {
  const fractions = event.seconds?.some((c) => [c.start, c.repeat].some((n) => n % MICROS !== 0)) ?? false;
  return {
    seconds: fractions ? ALL_SIXTY : sixtyOf(event.seconds, MICROS),
    ...(fractions ? { subSeconds: subSecondsOf(event.seconds!) } : {}),
    minutes: sixtyOf(event.minutes, 1),
    hours: maskOf(event.hours, 0, 23),
    days: dayRule(event),
    months: maskOf(event.months, 1, 12),
    ...yearsOf(event.years),
  };
}

function dayRule(event: CalendarEvent): DayRule {
  const rule = everyDay();
  if (event.days) {
    const mask = maskOf(event.days, 1, 31, event.fromEnd) >>> 1;
    rule.dom = event.fromEnd ? 0 : mask;
    rule.fromEnd = event.fromEnd ? mask : 0;
  }
  // systemd's week starts on Monday, ours on Sunday.
  if (event.weekdays !== 0) rule.dow = ((event.weekdays << 1) | (event.weekdays >>> 6)) & ALL_WEEKDAYS;
  return rule;
}

function maskOf(chain: readonly Component[] | undefined, from: number, to: number, fromEnd = false): number {
  let mask = 0;
  const all = [{ start: from, stop: to, repeat: 1 }];
  eachValue(chain ?? all, { name: "", from, to }, fromEnd, (n) => {
    mask |= 1 << n;
  });
  return mask;
}

function sixtyOf(chain: readonly Component[] | undefined, unit: number): Sixty {
  if (chain === undefined) return ALL_SIXTY;
  const members = new Array<boolean>(60).fill(false);
  eachValue(chain, { name: "", from: 0, to: 60 * unit - 1 }, false, (n) => {
    members[Math.floor(n / unit)] = true;
  });
  return sixty(members);
}

function yearsOf(chain: readonly Component[] | undefined): Pick<Fields, "firstYear" | "lastYear" | "years"> {
  // Without years, local times before 1970 count too: New York's evening of 1969-12-31 is later than the epoch.
  if (chain === undefined) return { firstYear: 1900, lastYear: MAX_YEAR };
  const years = new Uint8Array(MAX_YEAR - MIN_YEAR + 1);
  eachValue(chain, { name: "", from: MIN_YEAR, to: MAX_YEAR }, false, (n) => {
    years[n - MIN_YEAR] = 1;
  });
  return { firstYear: MIN_YEAR, lastYear: MAX_YEAR, years };
}

function subSecondsOf(chain: readonly Component[]): SubSeconds {
  const ranges = chain.map(({ start, stop, repeat }) => {
    const end = repeat === 0 ? start : stop >= 0 ? stop : LAST_MICRO;
    return { start: start / 1_000, stop: Math.floor(end / 1_000), repeat: repeat / 1_000 };
  });
  if (ranges.some((range) => !Number.isInteger(range.start) || !Number.isInteger(range.repeat))) {
    throw calendarFault(
      "The seconds are finer than milliseconds.",
      "Times are kept in milliseconds: use at most three decimals.",
    );
  }
  return new SubSeconds(ranges);
}
