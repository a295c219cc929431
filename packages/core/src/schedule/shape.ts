import { z } from "zod";
import { NAME_PATTERN } from "../names.js";
import { MAX_ITEMS, tooMany } from "./size.js";

export const CHOICE =
  'A schedule has exactly one of cron ("0 9 * * 1-5"), calendar ("Mon..Fri 09:00"), every ("10m") or at ("2026-01-31T09:00:00Z"), or is a union: any, with a list of these';

/** Loose on types, so that `every: 90` gets our message (write 90s) rather than "expected string". */
const textOrNumber = z.union([z.string(), z.number()]);

const expression = {
  cron: z.string().optional(),
  calendar: z.string().optional(),
  every: textOrNumber.optional(),
  at: textOrNumber.optional(),
  timezone: z.string().optional(),
  origin: z.string().optional(),
  start: z.string().optional(),
  end: z.string().optional(),
};

const choice = {
  error: (issue: { code?: string | undefined }) => (issue.code === "invalid_type" ? `${CHOICE}.` : undefined),
};

/** Refuses a field with words of our own, where the plain "there is no such field" would mislead. */
const misplaced = (what: string, remedy: string) =>
  z
    .custom<undefined>((value) => value === undefined, {
      error: `${what} ${remedy}`,
      params: { code: "INVALID_SCHEDULE" },
    })
    .optional();

const ofTheWhole = {
  jitter: misplaced("jitter belongs to the whole schedule.", "Write it beside its start and end."),
  maxRuns: misplaced("maxRuns belongs to the whole schedule.", "Write it beside its start and end."),
};
const unanchored = {
  anchor: misplaced("anchor belongs to an every schedule that stands alone.", "Leave it out here."),
};

const exclusionShape = z.strictObject({
  ...expression,
  ...ofTheWhole,
  ...unanchored,
  named: z
    .string()
    .regex(NAME_PATTERN, "A calendar's name has 1 to 128 letters, digits, dots, dashes and underscores")
    .optional(),
});

const dstShape = z.strictObject({
  gap: z.enum(["run-after", "skip"]).optional(),
  overlap: z.enum(["first", "both"]).optional(),
});

const simple = {
  ...expression,
  dst: dstShape.optional(),
  except: few(exclusionShape, "Exclusions").pipe(z.array(exclusionShape)).optional(),
};

const memberShape = z.strictObject({ ...simple, ...ofTheWhole, ...unanchored }, choice);

const members = few(memberShape, "Members").refine((list) => tooMany(list) === undefined, {
  error: ({ input }) => tooMany(input as unknown[])?.join(" "),
  params: { code: "INVALID_SCHEDULE" },
  abort: true,
});

/** Everything optional, so that what is missing or too much gets one message of ours. */
export const shape = z.strictObject(
  {
    ...simple,
    anchor: z.enum(["origin", "finish"]).optional(),
    any: members.pipe(z.array(memberShape)).optional(),
    jitter: z.string().optional(),
    maxRuns: z.number().optional(),
  },
  choice,
);

export const SCHEDULE_FIELDS: readonly string[] = Object.keys(shape.shape);

/** A list of what `item` reads, whose length is looked at before: hostile input may have a million. */
function few<T extends z.ZodType>(_item: T, what: string) {
  return z.custom<z.input<T>[]>((value) => Array.isArray(value) && value.length <= MAX_ITEMS, {
    error: `${what} are a list of at most ${MAX_ITEMS}`,
    abort: true,
  });
}

export type Shape = z.output<typeof shape>;
export type MemberShape = z.output<typeof memberShape>;
export type ExclusionShape = z.output<typeof exclusionShape>;
