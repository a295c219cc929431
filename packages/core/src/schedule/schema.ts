import { z } from "zod";
import { CarillonError, quote } from "../errors.js";
import { compileSchedule } from "./compile.js";
import { formatInstant, parseInstant } from "./instant.js";
import type { Schedule } from "./types.js";
import { requireZone } from "./zone-names.js";

const SYNTAXES = ["cron", "calendar", "every", "at"] as const;
const CHOICE =
  'A schedule has exactly one of cron ("0 9 * * 1-5"), calendar ("Mon..Fri 09:00"), every ("10m") or at ("2026-01-31T09:00:00Z")';

/** Loose on types, so that `every: 90` gets our message (write 90s) rather than "expected string". */
const textOrNumber = z.union([z.string(), z.number()]);

const shape = z.strictObject(
  {
    cron: z.string().optional(),
    calendar: z.string().optional(),
    every: textOrNumber.optional(),
    at: textOrNumber.optional(),
    timezone: z.string().optional(),
    origin: z.string().optional(),
  },
  { error: (issue) => (issue.code === "invalid_type" ? `${CHOICE}.` : undefined) },
);
type Shape = z.output<typeof shape>;

/**
 * When a task runs, from a stranger's hands: exactly one syntax, no unknown keys, every expression compiled once.
 * The result is normalised (spaces in cron, zone names, `at` and `origin` in UTC) and plain JSON. Issues carry the
 * path of the field and, in `params.code`, the `CarillonError` code. A schedule that can never fire passes: ask
 * `neverFires`.
 */
export const scheduleSchema = shape.transform((input, context): Schedule => {
  try {
    return normalise(input);
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    const path = error.field === undefined ? [] : error.field.split(".").slice(1);
    context.issues.push({
      code: "custom",
      input,
      path,
      // The path already says where.
      message: error.field === undefined ? error.message : error.message.slice(error.field.length + 2),
      params: { code: error.code },
    });
    return z.NEVER;
  }
});

function normalise(input: Shape): Schedule {
  const given = SYNTAXES.filter((syntax) => input[syntax] !== undefined);
  if (given.length !== 1) {
    const found = given.length === 0 ? "none is given" : `${given.join(" and ")} are given`;
    throw new CarillonError("INVALID_SCHEDULE", `${CHOICE}; ${found}.`);
  }
  const syntax = given[0]!;
  refuse(input, "timezone", syntax === "cron" || syntax === "calendar", "cron or calendar");
  refuse(input, "origin", syntax === "every", "every");
  const schedule = plain(input);
  compileSchedule(schedule);
  return schedule;
}

function refuse(input: Shape, key: "timezone" | "origin", allowed: boolean, where: string): void {
  if (allowed || input[key] === undefined) return;
  throw new CarillonError("INVALID_SCHEDULE", `${key} belongs to ${where}.`, {
    field: `schedule.${key}`,
    remedy: "Leave it out here.",
  });
}

function plain(input: Shape): Schedule {
  const timezone =
    input.timezone === undefined ? {} : { timezone: requireZone(input.timezone, "schedule.timezone") };
  if (input.cron !== undefined) return { cron: squeeze(input.cron), ...timezone };
  if (input.calendar !== undefined) return { calendar: input.calendar, ...timezone };
  if (input.at !== undefined) return { at: formatInstant(parseInstant(input.at, "schedule.at")) };
  const every = input.every;
  if (typeof every !== "string") {
    const positive = every !== undefined && every > 0;
    throw new CarillonError("INVALID_DURATION", `${quote(every)} is a bare number.`, {
      field: "schedule.every",
      remedy: `Write a text with a unit: "${positive ? every : 90}s" for seconds, or ms, m, h, d, w.`,
    });
  }
  if (input.origin === undefined) return { every };
  return { every, origin: formatInstant(parseInstant(input.origin, "schedule.origin")) };
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
