type Morning = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11;
type Plain = "SECOND" | "MINUTE" | "HOUR" | "WEEK" | "WEEKDAY" | "WEEKEND" | "QUARTER" | "YEAR";
type Name =
  | `EVERY_${Plain | "2ND_HOUR" | "2ND_HOUR_FROM_1AM_THROUGH_11PM" | "2ND_MONTH" | "6_MONTHS"}`
  | `EVERY_${5 | 10 | 30}_${"SECONDS" | "MINUTES"}`
  | `EVERY_${Exclude<Morning, 1> | 12}_HOURS`
  | `EVERY_DAY_AT_${`${Morning}${"AM" | "PM"}` | "NOON" | "MIDNIGHT"}`
  | `EVERY_1ST_DAY_OF_MONTH_AT_${"MIDNIGHT" | "NOON"}`
  | `EVERY_30_MINUTES_BETWEEN_${"9AM_AND_5PM" | "9AM_AND_6PM" | "10AM_AND_7PM"}`
  | `MONDAY_TO_FRIDAY_AT_${`${Morning}${"AM" | "PM"}` | "12PM" | "09_30AM" | "11_30AM"}`;

const times: Record<string, string> = {
  EVERY_SECOND: "* * * * * *",
  EVERY_MINUTE: "* * * * *",
  EVERY_HOUR: "0 * * * *",
  EVERY_DAY_AT_NOON: "0 12 * * *",
  EVERY_DAY_AT_MIDNIGHT: "0 0 * * *",
  EVERY_WEEK: "0 0 * * 0",
  EVERY_WEEKDAY: "0 0 * * 1-5",
  EVERY_WEEKEND: "0 0 * * 0,6",
  EVERY_1ST_DAY_OF_MONTH_AT_MIDNIGHT: "0 0 1 * *",
  EVERY_1ST_DAY_OF_MONTH_AT_NOON: "0 12 1 * *",
  EVERY_2ND_HOUR: "0 */2 * * *",
  EVERY_2ND_HOUR_FROM_1AM_THROUGH_11PM: "0 1-23/2 * * *",
  EVERY_2ND_MONTH: "0 0 1 */2 *",
  EVERY_QUARTER: "0 0 1 */3 *",
  EVERY_6_MONTHS: "0 0 1 */6 *",
  EVERY_YEAR: "0 0 1 1 *",
  EVERY_30_MINUTES_BETWEEN_9AM_AND_5PM: "*/30 9-17 * * *",
  EVERY_30_MINUTES_BETWEEN_9AM_AND_6PM: "*/30 9-18 * * *",
  EVERY_30_MINUTES_BETWEEN_10AM_AND_7PM: "*/30 10-19 * * *",
  MONDAY_TO_FRIDAY_AT_09_30AM: "30 9 * * 1-5",
  MONDAY_TO_FRIDAY_AT_11_30AM: "30 11 * * 1-5",
  MONDAY_TO_FRIDAY_AT_12PM: "0 12 * * 1-5",
};
for (const step of [5, 10, 30]) {
  times[`EVERY_${step}_SECONDS`] = `*/${step} * * * * *`;
  times[`EVERY_${step}_MINUTES`] = `*/${step} * * * *`;
}
for (let step = 2; step <= 12; step++) times[`EVERY_${step}_HOURS`] = `0 */${step} * * *`;
for (let hour = 1; hour <= 11; hour++) {
  for (const [half, first] of [
    ["AM", 0],
    ["PM", 12],
  ] as const) {
    times[`EVERY_DAY_AT_${hour}${half}`] = `0 ${hour + first} * * *`;
    times[`MONDAY_TO_FRIDAY_AT_${hour}${half}`] = `0 ${hour + first} * * 1-5`;
  }
}

/** The expressions of `@nestjs/schedule`, by its names. */
export const CronExpression = Object.freeze(times) as Readonly<Record<Name, string>>;
