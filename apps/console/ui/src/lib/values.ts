/** An object with fields: no list, and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two values are the same JSON. */
export function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The words of a field that holds several, with spaces or commas between them. */
export function wordsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
