import { z } from "zod";
import { CarillonError, quote } from "../../errors.js";
import { formatInstant } from "../../words/times.js";
import type { Exclusion, Surroundings } from "../exclude/exclusion.js";
import { clockOf, dayExcluder, fieldExcluder, ruleOf } from "../exclude/on-clock.js";
import { ALL_HOURS, ALL_SIXTY, isAllSixty } from "../fields/bits.js";
import { type Fields, timeless } from "../fields/fields.js";
import { describeFields } from "../text/describe-fields.js";
import { localText, wallText } from "../text/local.js";
import { grainOfFields, type Timetable } from "../timetable.js";
import type { CalendarSchedule, CronSchedule, DstChoice } from "../types.js";
import { type DstRule, dstRule } from "../zone/dst.js";
import { FieldSchedule } from "../zone/field-schedule.js";
import { isUtc } from "../zone/names.js";
import { CHANGES, changesOf, type Segment, zoneOf } from "../zone/offsets.js";
import { type Kind, type KindFields, type Role, storedZone, type Warn } from "./kind.js";

/** The longest cron or calendar expression, in characters. */
export const MAX_EXPRESSION_LENGTH = 512;

/** A parsed cron or calendar expression. */
export interface Expression {
  readonly fields: Fields;
  /** The zone that is used: the expression's own, else the given one, else UTC. */
  readonly zone: string;
  /** The expression names its zone itself. */
  readonly ownZone?: boolean;
  /** It names days and no time: a schedule fires at midnight, an exclusion removes the whole day. */
  readonly daysOnly?: boolean;
  readonly rule: DstRule;
  readonly canonical: string;
}

type Spec = Pick<CronSchedule, "timezone" | "dst" | "dialect">;

/** Differences between cron and calendar events. */
interface Syntax<S extends Spec> extends Pick<Kind<S>, "key" | "takes" | "example" | "label" | "usesSeed"> {
  /** Normalises an expression for storage. */
  stored(expression: string): Omit<S, keyof Spec>;
  read(schedule: S, seed: string): Expression;
  lint(schedule: S, expression: Expression, warn: Warn): void;
}

const ALL_DAY = { hours: ALL_HOURS, minutes: ALL_SIXTY, seconds: ALL_SIXTY };
/** Excludes both passes, and skipped times too, because a schedule may run these late. */
const ALL_TIMES: DstRule = { gap: Number.POSITIVE_INFINITY, overlap: "both" };

/** A kind whose times are sets of values on a clock. */
export function expressionKind<S extends CronSchedule | CalendarSchedule>(
  syntax: Syntax<S>,
): Kind<S, z.ZodString> {
  const { read, stored, lint, ...rest } = syntax;
  return {
    ...rest,
    shape: z.string(),
    counts: "characters",
    normalise: (expression, fields) =>
      ({ ...stored(expression), ...storedZone(fields), ...storedDialect(fields), ...storedDst(fields) }) as S,
    compile: (schedule, seed) => timetableOf(read(schedule, seed), schedule.dst),
    exclude: (spec, { seed }: Surroundings) => exclusionOf(read(spec, seed), spec.timezone),
    canonical: (spec, seed, role) => canonicalText(read(spec, seed), spec, role),
    describe(spec, seed, role) {
      const expression = read(spec, seed);
      if (role !== "exclusion")
        return `${describeFields(expression.fields)} (${expression.zone})${dialectText(spec)}${dstText(spec.dst)}`;
      const zone = expression.ownZone ? expression.zone : spec.timezone;
      return (
        describeFields(expression.fields, expression.daysOnly) +
        (zone === undefined ? "" : ` (${zone})`) +
        dialectText(spec)
      );
    },
    lint(schedule, warn) {
      const expression = read(schedule, "");
      if (isEachSecond(expression.fields)) {
        const message = "It fires each second or more often while it matches.";
        warn("EACH_SECOND", message, "For once a minute, write 0 for the second.");
      }
      lint(schedule, expression, warn);
      if (schedule.dst?.gap === undefined) lintGaps(timetableOf(expression, schedule.dst), warn);
      if (schedule.dst !== undefined && isUtc(expression.zone)) {
        const message = "dst has no effect in UTC, whose clock never changes.";
        warn("DST_IGNORED", message, "Give a timezone, or leave out dst.");
      }
    },
  };
}

/** Warns about times that a clock change skips, and that are not made up for. */
function lintGaps({ zone, lostBefore }: Timetable, warn: Warn): void {
  for (const segment of changesOf(zoneOf(zone), CHANGES.from, CHANGES.to)) {
    const lost = lostBefore?.(segment);
    if (lost === undefined) continue;
    const message = `The clock of ${zone} skips ${wallText(lost)}: it does not run then.`;
    warn("CLOCK_SKIPS", message, 'For a run right after the clock change, add dst: { gap: "run-after" }.');
    return;
  }
}

/**
 * The first clock change of two years after which the expression's rule and another one lead to different times, in words.
 * Undefined if there is none.
 * @param other the system that has the other rule
 */
export function differenceAtChange(
  { fields, zone: id, rule: own }: Expression,
  rule: DstRule,
  other: string,
): string | undefined {
  const zone = zoneOf(id);
  const schedules = [own, rule].map((one) => new FieldSchedule(fields, zone, one));
  for (const { start: at } of changesOf(zone, CHANGES.from, CHANGES.to)) {
    const [ours, theirs] = schedules.map((schedule) => schedule.next(at - 1));
    if (ours === theirs) continue;
    const [here, there] = [ours, theirs].map((time) =>
      time === undefined ? "never" : localText(time, zone),
    );
    return `After the clock change at ${formatInstant(at)} it fires next at ${here}; ${other}, at ${there}.`;
  }
  return undefined;
}

/** Checks the length before any pattern reads the text: hostile input may be megabytes. @throws `INVALID_SCHEDULE` */
export function assertLength(expression: string, field: string): void {
  if (typeof expression !== "string")
    throw new CarillonError("INVALID_SCHEDULE", `${quote(expression)} is not a text.`, { field });
  if (expression.length > MAX_EXPRESSION_LENGTH) {
    const what = `The expression is longer than ${MAX_EXPRESSION_LENGTH} characters.`;
    const remedy = "Use a shorter one, or several tasks.";
    throw new CarillonError("INVALID_SCHEDULE", what, { field, remedy });
  }
}

function storedDialect({ dialect }: KindFields): { dialect?: string } {
  return dialect === undefined ? {} : { dialect };
}

function storedDst({ dst }: KindFields): { dst?: DstChoice } {
  const { gap, overlap } = dst ?? {};
  if (gap === undefined && overlap === undefined) return {};
  return { dst: { ...(gap === undefined ? {} : { gap }), ...(overlap === undefined ? {} : { overlap }) } };
}

function timetableOf({ fields, zone, rule }: Expression, dst: DstChoice | undefined): Timetable {
  const compiled = new FieldSchedule(fields, zoneOf(zone), dstRule(rule, dst));
  const wallOf = (occurrence: number) => compiled.wallOf(occurrence);
  const lostBefore = (segment: Segment) => compiled.lostBefore(segment);
  return { compiled, zone, grain: grainOfFields(fields), fields, wallOf, lostBefore };
}

function exclusionOf(expression: Expression, timezone: string | undefined): Exclusion {
  const zone = expression.ownZone || timezone !== undefined ? expression.zone : undefined;
  const rule = ruleOf(timeless(expression.fields));
  const wholeDays = expression.daysOnly ?? false;
  const named = { ...rule.fields, ...(wholeDays ? ALL_DAY : {}) };
  return {
    wholeDays,
    on(target) {
      const clock = clockOf(zone, target);
      return [wholeDays ? dayExcluder(rule.days, clock) : fieldExcluder(rule, clock)];
    },
    times: (own) => new FieldSchedule(named, zoneOf(zone ?? own), ALL_TIMES),
  };
}

function canonicalText(expression: Expression, { timezone, dialect, dst }: Spec, role: Role): string {
  const { zone, ownZone, daysOnly } = expression;
  const canonical = expression.canonical + (dialect === undefined ? "" : ` dialect ${dialect}`);
  if (role === "exclusion") {
    // The missing time distinguishes whole days from midnight.
    const text = daysOnly ? canonical.replace(" 00:00:00", "") : canonical;
    // Without a zone an exclusion is read in the zone of its schedule, even if that is UTC.
    return text + (!ownZone && timezone ? ` ${zone}` : "");
  }
  const clock = role === "member" && !ownZone && zone !== "UTC" ? ` ${zone}` : "";
  return (
    canonical +
    clock +
    (dst?.gap === undefined ? "" : ` gap ${dst.gap}`) +
    (dst?.overlap === undefined ? "" : ` overlap ${dst.overlap}`)
  );
}

function dialectText({ dialect }: Spec): string {
  return dialect === undefined ? "" : `, by the rules of ${dialect}`;
}

function dstText(dst: DstChoice | undefined): string {
  const texts: string[] = [];
  if (dst?.gap === "run-after") texts.push("times that the clock skips run right after");
  if (dst?.gap === "skip") texts.push("times that the clock skips are left out");
  if (dst?.overlap === "first") texts.push("times that come twice run once");
  if (dst?.overlap === "both") texts.push("times that come twice run twice");
  return texts.map((text) => `, ${text}`).join("");
}

function isEachSecond({ seconds, subSeconds }: Fields): boolean {
  return subSeconds ? subSeconds.size >= 60 : isAllSixty(seconds);
}

/** Shape of text or a number that `parseDuration` may read. */
export const DURATION: z.ZodUnion<[z.ZodString, z.ZodNumber]> = z.union(
  [z.string(), z.number()],
  "not a duration",
);
