import { z } from "zod";
import { named } from "./exclude/named.js";
import { DURATION } from "./kinds/expression.js";
import { KIND_SHAPES, KINDS } from "./kinds/index.js";
import { MAX_ITEMS, tooMany } from "./size.js";
import { list } from "./text/english.js";
import { INSTANT } from "./text/instant.js";

const EXAMPLES = KINDS.map(({ key, example }) => `${key} (${JSON.stringify(example)})`);
export const CHOICE: string = `A schedule has exactly one of ${list(EXAMPLES, "or")}, or is a union: any, with a list of these`;

const { manual, ...timed } = KIND_SHAPES;

const expression = {
  ...timed,
  timezone: z.string().optional(),
  dialect: z.string().optional(),
  origin: INSTANT.optional(),
  start: INSTANT.optional(),
  end: INSTANT.optional(),
};

const choice = {
  error: (issue: { code?: string | undefined }) => (issue.code === "invalid_type" ? `${CHOICE}.` : undefined),
};

/** Refuses a field with a text of its own, if the plain "there is no such field" would mislead. */
const misplaced = (what: string, remedy: string) =>
  z
    .custom<undefined>((value) => value === undefined, {
      error: `${what} ${remedy}`,
      params: { code: "INVALID_SCHEDULE" },
    })
    .optional();

const ofTheWhole = {
  jitter: misplaced("jitter belongs to the whole schedule.", "Write it at the top level of the schedule."),
  maxRuns: misplaced("maxRuns belongs to the whole schedule.", "Write it at the top level of the schedule."),
};
const unanchored = {
  anchor: misplaced("anchor belongs to an every schedule that stands alone.", "Leave it out here."),
};

const exclusionShape = z.strictObject({
  ...expression,
  ...ofTheWhole,
  ...unanchored,
  named: named.shape.optional(),
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

/** Everything is optional, so that missing and superfluous fields get our own message. */
export const shape = z.strictObject(
  {
    ...simple,
    manual,
    anchor: z.enum(["origin", "finish"]).optional(),
    any: members.pipe(z.array(memberShape)).optional(),
    jitter: DURATION.optional(),
    maxRuns: z.number().optional(),
  },
  choice,
);

export const SCHEDULE_FIELDS: readonly string[] = Object.keys(shape.shape);

/** A list of items whose length is checked first, because hostile input may have a million. */
function few<T extends z.ZodType>(_item: T, what: string) {
  return z.custom<z.input<T>[]>((value) => Array.isArray(value) && value.length <= MAX_ITEMS, {
    error: `${what} are a list of at most ${MAX_ITEMS}`,
    abort: true,
  });
}

export type Shape = z.output<typeof shape>;
export type MemberShape = z.output<typeof memberShape>;
export type ExclusionShape = z.output<typeof exclusionShape>;
