import { CarillonError } from "@carillon/sdk";
import type { MoveOptions } from "@carillon/sdk/internal";
import { taskSchema } from "@carillon/sdk/schedule";
import { z } from "zod";
import type { Redactor } from "../redact.js";
import { CHANGED, LEDGER, MOVED, RUNS, TRIGGERED } from "./answers.js";
import { RUNS_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";
import { taskOf, withHidden } from "./tasks.js";

const text = z.string("not a text").exactOptional();
const overlap = taskSchema.shape.overlap.unwrap();

/** Overrides the task's own policy. */
const OVERLAP = z.enum(overlap.enum, `not one of ${overlap.options.join(", ")}`).exactOptional();

const PAUSE_ONE = z.strictObject({
  note: text,
  cancelQueued: z.boolean("not true or false").exactOptional(),
});
const RESUME = z.strictObject({
  missed: z.enum(["skip", "catch-up"], "not one of skip, catch-up").exactOptional(),
});
const TRIGGER_ONE = z.strictObject({
  key: text,
  overlap: OVERLAP,
  force: z.boolean("not true or false").exactOptional(),
  payload: z.unknown().optional(),
});

const MOVE = z.strictObject({
  queue: z.string("not a text"),
  wait: z.union([z.string(), z.number()]).exactOptional(),
});

/** Actions on a task other than changes of its definition, and its runs and statistics. */
export const verbEndpoints = (redactor: Redactor) => ({
  pause: endpoint({ body: PAUSE_ONE, answer: CHANGED }, async (asked) =>
    ok({ changed: await asked.client.pause(taskOf(asked), asked.body) }),
  ),
  resume: endpoint({ body: RESUME, answer: CHANGED }, async (asked) =>
    ok({ changed: await asked.client.resume(taskOf(asked), asked.body) }),
  ),
  trigger: endpoint({ body: TRIGGER_ONE, answer: TRIGGERED, status: [202] }, async (asked) => {
    const { payload } = asked.body;
    if (payload !== undefined && asked.identity.role !== "admin") throw definesWork();
    const name = taskOf(asked);
    const { task } = await withHidden(redactor, asked.client, { ...name, payload });
    const how = { ...asked.body, payload: (task as { payload: unknown }).payload };
    const triggered = await asked.client.trigger(name, how);
    if (triggered.outcome !== "skipped") return { status: 202, body: triggered };
    throw new CarillonError(triggered.code, "an earlier run of the task has not ended.", {
      remedy: 'Wait for it, or send {"overlap":"allow"}.',
    });
  }),
  move: endpoint({ body: MOVE, answer: MOVED }, async (asked) => {
    const { queue, ...how } = asked.body;
    return ok(await asked.client.move(taskOf(asked), queue, how as MoveOptions));
  }),
  runs: endpoint({ query: RUNS_QUERY, answer: RUNS }, async (asked) =>
    ok({ runs: await asked.client.runs.list(taskOf(asked), asked.query) }),
  ),
  ledger: endpoint({ answer: LEDGER }, async (asked) =>
    ok({ ledger: await asked.client.runs.ledger(taskOf(asked)) }),
  ),
});

/** A payload says what a run does, such as the URL that it calls: who gives one defines work, as a put does. */
function definesWork(): CarillonError {
  return new CarillonError("FORBIDDEN", "an operator may not give a payload.", {
    field: "payload",
    remedy: "Leave it out, and the task's own is used, or sign in with the token of an admin.",
  });
}
