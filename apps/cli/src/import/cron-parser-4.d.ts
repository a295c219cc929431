/** The part of cron-parser 4, a CommonJS module, that an import uses. */
declare module "cron-parser-4" {
  const module: {
    parseExpression(
      expression: string,
      options: { tz: string; currentDate: Date },
    ): { next(): { getTime(): number } };
  };
  export default module;
}
