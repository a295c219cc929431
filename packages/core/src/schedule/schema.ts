import { z } from "zod";
import { CarillonError, quote } from "../errors.js";
import { boundsOf } from "./bounds.js";
import { compileLenient } from "./compile.js";
import { within } from "./fault.js";
import { storedInstant } from "./instant.js";
import { parseJitter } from "./jitter.js";
import { CHOICE, type ExclusionShape, type MemberShape, type Shape, shape } from "./shape.js";
import { checkSize } from "./size.js";
import type {
  DstChoice,
  Limited,
  Schedule,
  ScheduleBounds,
  ScheduleExclusion,
  SimpleSchedule,
  UnionSchedule,
  WholeSchedule,
} from "./types.js";
import { delayOf } from "./whole.js";
import { requireZone } from "./zone-names.js";

const MAX_RUNS = 1_000_000_000;
const SYNTAXES = ["cron", "calendar", "every", "at"] as const;

/**
 * When a task runs, from a stranger's hands: exactly one syntax or a union, no unknown keys, every expression compiled
 * once. The result is normalised (spaces in cron, zone names, times in UTC) and plain JSON; what was not given is not
 * added. Issues carry the path of the field and, in `params.code`, the `CarillonError` code. A schedule that can never
 * fire passes: ask `neverFires`. So does one that names calendars, which are not looked for here.
 */
export const scheduleSchema = shape.transform((input, context): Schedule => {
  try {
    checkSize(input);
    const schedule = normalise(input);
    compileLenient(schedule);
    return schedule;
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    context.issues.push({
      code: "custom",
      input,
      path: pathOf(error.field),
      // The path already says where.
      message: error.field === undefined ? error.message : error.message.slice(error.field.length + 2),
      params: { code: error.code },
    });
    return z.NEVER;
  }
});

/** `schedule.any[2].cron` without its root. */
function pathOf(field = "schedule"): Array<string | number> {
  const parts = field.match(/[^.[\]]+/g)?.slice(1) ?? [];
  return parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

function normalise({ any, anchor, jitter, maxRuns, ...input }: Shape): Schedule {
  const common = whole({ jitter, maxRuns });
  if (any !== undefined) return { ...union(any, { ...input, anchor }), ...common };
  refuse({ anchor }, "anchor", input.every !== undefined, "every");
  const schedule = { ...member(input), ...(anchor === "finish" ? { anchor } : {}), ...common } as Schedule;
  delayOf(schedule);
  return schedule;
}

function whole({ jitter, maxRuns }: WholeSchedule): WholeSchedule {
  if (jitter !== undefined) parseJitter(jitter);
  if (maxRuns !== undefined && !(Number.isInteger(maxRuns) && maxRuns >= 1 && maxRuns <= MAX_RUNS)) {
    throw new CarillonError("INVALID_SCHEDULE", `${quote(maxRuns)} is not a whole number of runs.`, {
      field: "schedule.maxRuns",
      remedy: `Give 1 to ${MAX_RUNS}, or leave it out for no limit.`,
    });
  }
  return { ...(jitter === undefined ? {} : { jitter }), ...(maxRuns === undefined ? {} : { maxRuns }) };
}

function union(any: MemberShape[], input: Omit<Shape, "any" | keyof WholeSchedule>): UnionSchedule {
  const { start, end, except, ...others } = input;
  const extra = Object.entries(others).find(([, value]) => value !== undefined)?.[0];
  if (extra !== undefined) {
    const [where, remedy] =
      extra === "anchor"
        ? ["an every schedule that stands alone", "Leave it out here."]
        : ["the members of a union", "Write it inside of any."];
    throw new CarillonError("INVALID_SCHEDULE", `${extra} belongs to ${where}.`, {
      field: `schedule.${extra}`,
      remedy,
    });
  }
  if (any.length === 0) {
    throw new CarillonError("INVALID_SCHEDULE", "The union is empty.", {
      field: "schedule.any",
      remedy: "Give at least one schedule.",
    });
  }
  const members = any.map((one, i) => within(`schedule.any[${i}]`, () => member(one)));
  return { any: members, ...limits({ start, end, except }) };
}

function member(input: MemberShape): SimpleSchedule {
  const syntax = exactlyOne(input, SYNTAXES, CHOICE);
  refuse(input, "timezone", syntax !== "at", "cron, calendar and every");
  refuse(input, "origin", syntax === "every", "every");
  refuse(input, "dst", syntax === "cron" || syntax === "calendar", "cron and calendar");
  return { ...plain(input), ...dst(input.dst), ...limits(input) } as SimpleSchedule;
}

function exactlyOne<K extends string>(
  input: { [key in K]?: unknown },
  keys: readonly K[],
  choice: string,
): K {
  const given = keys.filter((key) => input[key] !== undefined);
  if (given.length === 1) return given[0]!;
  const found = given.length === 0 ? "none is given" : `${given.join(" and ")} are given`;
  throw new CarillonError("INVALID_SCHEDULE", `${choice}; ${found}.`, { field: "schedule" });
}

function refuse<T extends object>(input: T, key: keyof T & string, allowed: boolean, where: string): void {
  if (allowed || input[key] === undefined) return;
  throw new CarillonError("INVALID_SCHEDULE", `${key} belongs to ${where}.`, {
    field: `schedule.${key}`,
    remedy: "Leave it out here.",
  });
}

function plain(input: ExclusionShape | MemberShape) {
  const timezone =
    input.timezone === undefined ? {} : { timezone: requireZone(input.timezone, "schedule.timezone") };
  if (input.cron !== undefined) return { cron: squeeze(input.cron), ...timezone };
  if (input.calendar !== undefined) return { calendar: input.calendar, ...timezone };
  if (input.at !== undefined) return { at: storedInstant(input.at, "schedule.at") };
  const every = input.every;
  if (typeof every !== "string") {
    const count = every !== undefined && every > 0 ? every : 90;
    throw new CarillonError("INVALID_DURATION", `${quote(every)} is a bare number.`, {
      field: "schedule.every",
      remedy: `Write a text with a unit: "${count}s" for seconds, "${count}ms" for milliseconds, or m, h, d, w.`,
    });
  }
  if (input.origin === undefined) return { every, ...timezone };
  return { every, origin: storedInstant(input.origin, "schedule.origin"), ...timezone };
}

function dst(given: DstChoice | undefined): { dst?: DstChoice } {
  const { gap, overlap } = given ?? {};
  if (gap === undefined && overlap === undefined) return {};
  return { dst: { ...(gap === undefined ? {} : { gap }), ...(overlap === undefined ? {} : { overlap }) } };
}

function limits(input: ScheduleBounds & { except?: ExclusionShape[] | undefined }): Limited {
  const except = (input.except ?? []).map((spec, i) =>
    within(`schedule.except[${i}]`, () => exclusion(spec)),
  );
  return { ...bounds(input), ...(except.length === 0 ? {} : { except }) };
}

function bounds(input: ScheduleBounds): ScheduleBounds {
  boundsOf(input);
  const { start, end } = input;
  return {
    ...(start === undefined ? {} : { start: storedInstant(start, "schedule.start") }),
    ...(end === undefined ? {} : { end: storedInstant(end, "schedule.end") }),
  };
}

function exclusion(input: ExclusionShape): ScheduleExclusion {
  const choice = "An exclusion has exactly one of cron, calendar, every, at or named";
  const syntax = exactlyOne(input, [...SYNTAXES, "named"], choice);
  refuse(input, "timezone", syntax !== "at", "cron, calendar, every and named");
  refuse(input, "origin", syntax === "every", "every");
  if (input.named === undefined) return { ...plain(input), ...bounds(input) };
  const zone =
    input.timezone === undefined ? {} : { timezone: requireZone(input.timezone, "schedule.timezone") };
  return { named: input.named, ...zone, ...bounds(input) };
}

/** One space between fields. Long text stays as it is, to be refused for its length. */
function squeeze(cron: string): string {
  return cron.length > 2_048
    ? cron
    : cron
        .split(/[ \t]+/)
        .filter((field) => field !== "")
        .join(" ");
}
