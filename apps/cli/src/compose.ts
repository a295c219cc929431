import { type Expression, expressionOf, guessSyntax, type Syntax } from "./expression.js";
import { misuse } from "./failure.js";
import { kebab } from "./text.js";

const LIMITS = [
  ...(["origin", "start", "end", "except", "dialect"] as const),
  ...(["dstGap", "dstOverlap", "jitter", "maxRuns", "anchor"] as const),
];

/** Options of the command line, apart from its expressions. */
export type Limits = { [Name in (typeof LIMITS)[number]]?: Values[Name extends keyof Values ? Name : "any"] };
type Values = { except: string[]; maxRuns: number; any: string };

export function flagsOf(limits: Limits): string[] {
  return LIMITS.filter((name) => limits[name] !== undefined).map((name) => `--${kebab(name)}`);
}

/**
 * One schedule from the whole command line, before the schema checks it: several expressions are a union.
 *
 * @param calendars names that mean a calendar if they are a whole value of `--except`
 * @throws `INVALID_OPTION` for an option that none of the expressions accepts
 */
export function compose(
  expressions: readonly Expression[],
  limits: Limits,
  calendars: ReadonlySet<string>,
): object {
  const dst = { gap: limits.dstGap, overlap: limits.dstOverlap };
  const clock = dst.gap !== undefined || dst.overlap !== undefined;
  refuseUnused(expressions, "origin", limits.origin !== undefined, "intervals (10s, '1 month')");
  refuseUnused(expressions, "dst", clock, "cron and calendar events");
  refuseUnused(expressions, "dialect", limits.dialect !== undefined, "cron");
  const members = expressions.map((expression) => ({
    ...expression,
    ...(limits.origin !== undefined && takes(expression, "origin") ? { origin: limits.origin } : {}),
    ...(clock && takes(expression, "dst") ? { dst } : {}),
    ...(takes(expression, "dialect") ? { dialect: limits.dialect } : {}),
  }));
  const { start, end, jitter, maxRuns, anchor } = limits;
  const except = limits.except?.map((text) => exclusionOf(text, calendars));
  const whole = { start, end, except, jitter, maxRuns, anchor };
  return members.length === 1 ? { ...members[0], ...whole } : { any: members, ...whole };
}

/** The syntaxes that take an option. */
const TAKERS: Record<"origin" | "dst" | "dialect", readonly Syntax[]> = {
  origin: ["every"],
  dst: ["cron", "calendar"],
  dialect: ["cron"],
};

function takes(expression: Expression, field: keyof typeof TAKERS): boolean {
  return TAKERS[field].some((syntax) => syntax in expression);
}

function refuseUnused(
  expressions: readonly Expression[],
  field: keyof typeof TAKERS,
  given: boolean,
  where: string,
): void {
  if (!given || expressions.some((expression) => takes(expression, field))) return;
  throw misuse(field, `belongs to ${where}.`, "Leave it out here.");
}

/** An exclusion has no zone of its own: it uses the zone of its schedule. */
function exclusionOf(text: string, calendars: ReadonlySet<string>): object {
  return calendars.has(text) ? { named: text } : expressionOf(text, guessSyntax(text), undefined);
}
