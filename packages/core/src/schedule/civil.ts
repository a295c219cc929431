/** Calendar arithmetic on plain numbers: `Date` costs an allocation and knows only one zone. */

export const SECOND = 1_000;
export const MINUTE = 60_000;
export const HOUR = 3_600_000;
export const DAY = 86_400_000;

/** The ends of JavaScript time, ±100,000,000 days. */
export const MAX_TIME = 8.64e15;

/** Days since 1970-01-01 of a Gregorian date; month 1-12. */
export function daysFromCivil(year: number, month: number, day: number): number {
  // Years start in March here, so that the leap day comes last.
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** The date of a day number, packed into one integer: `year * 512 + month * 32 + day`. */
export function civilFromDays(days: number): number {
  const z = days + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return year * 512 + month * 32 + day;
}

export function yearOfDays(days: number): number {
  return Math.floor(civilFromDays(days) / 512);
}

/** 0 is Sunday. */
export function weekdayOfDays(days: number): number {
  return modulo(days + 4, 7);
}

export function daysInMonth(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

/** The remainder, which is never negative. */
export function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
