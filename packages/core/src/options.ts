import { CarillonError, invalid, quote } from "./errors.js";
import { nearestRemedy } from "./nearest.js";
import { type Duration, formatDuration, parseDuration } from "./schedule/text/duration.js";
import { type Instant, parseInstant } from "./schedule/text/instant.js";

/**
 * @param path of the option that holds these, if they are nested
 * @throws `INVALID_OPTION` for an unknown name, or if `options` is not an object
 */
export function assertOptions<Options extends object>(
  options: Options,
  known: readonly (keyof Options & string)[],
  path?: string,
): void {
  const names: readonly string[] = known;
  if (typeof options !== "object" || options === null)
    throw invalid(path ?? "options", "not an object.", `Known: ${names.join(", ")}.`);
  const unknown = Object.keys(options).find((key) => !names.includes(key));
  if (unknown !== undefined) {
    const field = path === undefined ? unknown : `${path}.${unknown}`;
    throw invalid(field, "there is no such option.", nearestRemedy(unknown, names));
  }
}

/**
 * Refuses listeners of events that an emitter does not have.
 * @throws `INVALID_OPTION` from `on`, with the nearest event
 */
export function assertEvents(
  emitter: { on(event: "newListener", listener: (name: string | symbol) => void): unknown },
  known: readonly string[],
): void {
  emitter.on("newListener", (name) => {
    const event = String(name);
    if (![...known, "error", "removeListener"].includes(event))
      throw invalid("event", `there is no event ${quote(event)}.`, nearestRemedy(event, known));
  });
}

/** Accepts undefined, which means that the option is not set. @throws `INVALID_OPTION` */
export function assertWhole(value: number | undefined, field: string, least: number, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw invalid(field, `got ${String(value)}.`, `Give a whole number from ${least} to ${most}.`);
}

/** Accepts undefined, which means that the option is not set. @throws `INVALID_OPTION` */
export function assertOneOf<Word>(value: Word | undefined, field: string, words: readonly Word[]): void {
  if (value === undefined || words.includes(value)) return;
  throw invalid(field, `got ${quote(value)}.`, `Use one of ${words.join(", ")}.`);
}

/**
 * Milliseconds of an option that is a duration: `"30s"`, or whole milliseconds. Undefined stays undefined.
 *
 * @param least, most the bounds in ms
 * @throws `INVALID_OPTION`, also for text that is not a duration
 */
export function durationOption(value: Duration, field: string, least: number, most: number): number;
export function durationOption(
  value: Duration | undefined,
  field: string,
  least: number,
  most: number,
): number | undefined;
export function durationOption(
  value: Duration | undefined,
  field: string,
  least: number,
  most: number,
): number | undefined {
  if (value === undefined) return undefined;
  const ms = typeof value === "string" ? millisecondsOf(value, field) : value;
  if (Number.isInteger(ms) && ms >= least && ms <= most) return ms;
  throw invalid(
    field,
    `got ${quote(value)}.`,
    `Give a duration from ${formatDuration(least)} to ${formatDuration(most)}: "30s", or whole milliseconds.`,
  );
}

/** UTC ms of an option that is a point in time, see `parseInstant`. @throws `INVALID_OPTION` naming `field` */
export function instant(value: Instant, field: string): number {
  try {
    return parseInstant(value, field);
  } catch (cause) {
    throw new CarillonError("INVALID_OPTION", "not a time.", {
      field,
      remedy: "Give ISO 8601 with Z or an offset, a Date, or epoch milliseconds.",
      cause,
    });
  }
}

/** Checks like `instant`, but accepts computed times that are not whole numbers. */
export function roundedInstant(value: Instant, field: string): number {
  return instant(typeof value === "number" ? Math.round(value) : value, field);
}

/** Parses like `parseDuration`, but with the error code of options. */
function millisecondsOf(text: string, field: string): number {
  try {
    return parseDuration(text, field);
  } catch (cause) {
    if (!(cause instanceof CarillonError)) throw cause;
    throw new CarillonError("INVALID_OPTION", `${quote(text)} is not a duration.`, {
      field,
      ...(cause.remedy === undefined ? {} : { remedy: cause.remedy }),
      cause,
    });
  }
}
