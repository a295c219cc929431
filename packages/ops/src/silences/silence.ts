import { randomBytes } from "node:crypto";
import { ALERT_KINDS, type Silence } from "@carillon/core";
import { assertSilenceScope, goneAt, invalid } from "@carillon/core/internal";
import { instant as instantOf, shortText } from "@carillon/sdk/internal";
import { z } from "zod";
import { alertKind } from "../alerts/alert.js";
import type { Call } from "../operation.js";
import { flag, given, instant, note, oneOf, time } from "../shapes.js";

/** Alerts to silence, and for how long. */
export const silenceInput = z.strictObject({
  owner: given.optional().describe("Alerts of this owner."),
  task: given.optional().describe("Alerts of this task: its id."),
  queue: given.optional().describe("Alerts of this queue."),
  kind: oneOf(ALERT_KINDS).optional().describe("Alerts of this kind, and of its end."),
  cause: given
    .optional()
    .describe("Alerts about runs that failed by this cause, by its id, and of their ends."),
  all: flag.optional().describe("Every alert of the namespace. Instead of the other fields."),
  until: instant
    .optional()
    .describe("End. Default, with a cause: when it is gone, a day after the last alert that was silenced."),
  note,
});

export const silence = z
  .object({
    id: z.string(),
    owner: z.string().optional(),
    task: z.string().optional(),
    queue: z.string().optional(),
    kind: alertKind.optional(),
    cause: z.string().optional(),
    all: z.boolean().optional(),
    until: time,
    untilGone: z
      .literal(true)
      .optional()
      .describe("Each alert that it silences moves `until` to a day later."),
    note: z.string().optional(),
    by: z.string().optional(),
    created: time,
  })
  .meta({ id: "Silence" });

/**
 * The silence that an input describes.
 *
 * @throws `INVALID_OPTION`, `INVALID_NAME`; `FORBIDDEN` for another owner than the caller's
 */
export async function silenceOf(
  { scope, store, by }: Call,
  input: z.output<typeof silenceInput>,
): Promise<Silence> {
  const { owner, task, queue, kind, cause, all, ...given } = scope.bind(input);
  const of = { owner, task, queue, kind, cause, all: scope.owner === undefined ? all : undefined };
  assertSilenceScope(of);
  const note = shortText(given.note, "note");
  const untilGone = given.until === undefined && cause !== undefined;
  if (given.until === undefined && !untilGone)
    throw invalid("until", "missing.", "Only a silence of a cause ends without a time.");
  const created = await store.freezes.time();
  const until = given.until === undefined ? goneAt(created) : instantOf(given.until, "until");
  if (until <= created) throw invalid("until", "in the past.", "Give the time at which the silence ends.");
  const fields = Object.entries(of).filter(([, value]) => value !== undefined && value !== false);
  return {
    id: randomBytes(6).toString("hex"),
    ...Object.fromEntries(fields),
    until,
    created,
    ...(untilGone && { untilGone }),
    ...(note && { note }),
    ...(by && { by }),
  };
}

/** Current silences that a caller may see, the first to end first. */
export async function silencesOf({ store, owner }: Call): Promise<Silence[]> {
  const all = await store.alerts.silences(await store.freezes.time());
  return all.filter((one) => owner === undefined || one.owner === owner);
}
