/** The options that were given, without those that are undefined. */
export function given<Options extends Record<string, string | undefined>>(
  options: Options,
): { [Name in keyof Options]?: string } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof Options]?: string };
}
