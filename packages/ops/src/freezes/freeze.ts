import { randomBytes } from "node:crypto";
import {
  ALERTS_QUEUE,
  CarillonError,
  type Duration,
  describeSchedule,
  type Freeze,
  type ScheduleInput,
  type TaskName,
} from "@carillon/core";
import {
  assertFreezeScope,
  covers,
  defined,
  frozenAt,
  invalid,
  nextFreeze,
  parseWindows,
} from "@carillon/core/internal";
import { type ChangeScope, instant as instantOf, shortText } from "@carillon/sdk/internal";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { type Holds, holdsOf } from "../holds.js";
import type { Call } from "../operation.js";
import { count, duration, flag, given, instant, taskName, taskRefs, time } from "../shapes.js";

/** Tasks that one freeze names: every queue has a copy of each freeze. */
const MOST_TASKS = 100;

/** Tasks to freeze, and for how long: until a time, until it is lifted, or in recurring windows. */
export const freezeInput = z.strictObject({
  owner: conditions.owner,
  tag: conditions.tag,
  queue: conditions.queue,
  tasks: z
    .array(taskRefs, "not a list")
    .min(1, "empty")
    .max(MOST_TASKS, `more than ${MOST_TASKS}`)
    .optional()
    .describe(`Only these tasks of one owner, at most ${MOST_TASKS}: \`[owner/]id\`.`),
  all: flag.optional().describe("Every task of the namespace. Instead of the other fields."),
  from: instant.optional().describe("Begin. Default: now. Not with a schedule."),
  until: instant.optional().describe("End. Default: none, until it is lifted. Not with a schedule."),
  schedule: z
    .custom<ScheduleInput>((input) => typeof input === "object", "not an object")
    .meta({ type: "object" })
    .optional()
    .describe("Begins of recurring windows: a `cron` or `calendar` expression, with `timezone`."),
  for: duration
    .optional()
    .describe("Length of each recurring window, at least 1 s. Required with a schedule, and only there."),
  note: given.optional().describe("Why: shown by skips, explain and errors; at most 500 characters."),
});

const scopeFields = {
  owner: z.string().optional(),
  tag: z.string().optional(),
  queue: z.string().optional(),
  tasks: z.array(taskName).readonly().optional(),
  all: z.boolean().optional(),
};
export const freezeScope = z.object(scopeFields).meta({ id: "FreezeScope" });

export const freeze = z
  .object({
    id: z.string(),
    ...scopeFields,
    from: time,
    until: time.optional(),
    schedule: z.custom<Freeze["schedule"]>().meta({ type: "object" }).optional(),
    humanized: z.string().optional().describe("The schedule in words."),
    length: count.optional(),
    note: z.string().optional(),
    by: z.string().optional(),
    created: time,
    active: z.boolean().describe("Whether it holds now."),
    activeUntil: time
      .optional()
      .describe(
        "End of the freeze or the present window. Missing: it does not hold now, or until it is lifted.",
      ),
  })
  .meta({ id: "Freeze" });

/** A freeze, and whether it holds now. */
export type FreezeView = z.output<typeof freeze>;

export function viewOf(freeze: Freeze, now: number): FreezeView {
  const frozen = frozenAt([freeze], now);
  const until = frozen?.until;
  return {
    ...freeze,
    ...(freeze.schedule && { humanized: describeSchedule(freeze.schedule) }),
    active: frozen !== undefined,
    ...(until !== undefined && { activeUntil: until }),
  };
}

/** Whether a caller may see a freeze: one that is bound to an owner sees its own and those of no owner. */
export function mayRead({ owner }: Call, freeze: Freeze): boolean {
  const whose = ownerOf(freeze);
  return owner === undefined || whose === undefined || whose === owner;
}

/** The owner whose tasks a freeze holds; undefined: those of several. */
export function ownerOf({ owner, tasks }: Freeze): string | undefined {
  return owner ?? tasks?.[0]?.owner;
}

/** Whether a freeze is a pause of this task until a time. */
export function isPauseOf({ tasks, until, schedule }: Freeze, name: TaskName): boolean {
  return tasks?.length === 1 && covers({ tasks }, name) && until !== undefined && schedule === undefined;
}

/** Names a freeze in the change log: its one task, or its scope. */
export function loggedOf({ id, tag, queue, tasks, ...freeze }: Freeze): ChangeScope {
  const [one] = tasks?.length === 1 ? tasks : [];
  return { ...(one ?? { owner: ownerOf({ id, tasks, ...freeze }), queue }), tag, freeze: id };
}

/** Counts what a freeze holds; of recurring windows, the present or next one. */
export function holdsOfFreeze({ scope }: Call, freeze: Freeze, now: number): Promise<Holds> {
  const from = frozenAt([freeze], now) ? now : (nextFreeze([freeze], now) ?? now);
  return holdsOf(scope, freeze, { from, until: frozenAt([freeze], from)?.until });
}

/**
 * The freeze that an input describes.
 *
 * @throws `INVALID_OPTION`, `INVALID_NAME`, `INVALID_SCHEDULE`, `NEVER_FIRES`; `FORBIDDEN` for another owner than the caller's, and
 * for the queue of alerts
 */
export async function freezeOf(
  { scope, store, by }: Call,
  input: z.output<typeof freezeInput>,
): Promise<{ freeze: Freeze; now: number }> {
  const { owner, tag, queue, tasks: refs, all: every, ...given } = scope.bind(input);
  const all = scope.owner === undefined ? every : undefined;
  const tasks = refs && (await Promise.all(refs.map((ref) => scope.locate(ref))));
  assertFreezeScope({ owner, tag, queue, tasks, all });
  const other = tasks?.find((one) => one.owner !== tasks[0]?.owner);
  if (other)
    throw invalid("tasks", `of several owners: ${other.owner} is another.`, "Give the tasks of one owner.");
  if (queue === ALERTS_QUEUE)
    throw new CarillonError("FORBIDDEN", "alerts go through this queue; it cannot be frozen.", {
      field: "queue",
    });
  const note = shortText(given.note, "note");
  const times = timesOf(given);
  const now = await store.freezes.time();
  const from = given.from === undefined ? now : instantOf(given.from, "from");
  if (times.until !== undefined && times.until <= Math.max(from, now))
    throw invalid(
      "until",
      "the end is in the past or before the beginning.",
      "Give a time after the beginning and after now.",
    );
  const freeze: Freeze = {
    id: randomBytes(6).toString("hex"),
    ...defined({ owner, tag, queue, tasks }),
    ...(all && { all }),
    ...times,
    from,
    ...(note && { note }),
    ...(by && { by }),
    created: now,
  };
  return { freeze, now };
}

function timesOf({
  from,
  until,
  schedule,
  for: length,
}: Omit<z.output<typeof freezeInput>, "owner">): Pick<Freeze, "until" | "schedule" | "length"> {
  if (schedule === undefined) {
    if (length !== undefined)
      throw invalid("for", "given without schedule.", "Give until, or the schedule of the windows.");
    return until === undefined ? {} : { until: instantOf(until, "until") };
  }
  const other = from !== undefined ? "from" : until !== undefined ? "until" : undefined;
  if (other !== undefined)
    throw invalid(other, "given with schedule.", "Windows take their times from the schedule.");
  return parseWindows(schedule, length as Duration | undefined);
}
