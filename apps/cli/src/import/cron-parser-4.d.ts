/** The part of cron-parser 4 that an import uses. */
declare module "cron-parser-4" {
  export function parseExpression(
    expression: string,
    options: { tz: string; currentDate: Date },
  ): { next(): { getTime(): number } };
}
