import { CarillonError, OUTCOMES, TASK_STATES, type TaskRef } from "@carillon/sdk";
import { CONDITION_NAMES, type ConditionName, conditionsIn } from "@carillon/sdk/conditions";
import { z } from "zod";
import { BULK, CANCELLED, RESUMED } from "./answers.js";
import { conditionShape } from "./conditions.js";
import { endpoint, ok } from "./route.js";
import { PAUSE, TRIGGER, text } from "./verbs.js";

const flag = z.boolean("not true or false").exactOptional();
const oneOf = <Word extends string>(words: readonly [Word, ...Word[]]) =>
  z.enum(words, `not one of ${words.join(", ")}`);
const outcome = oneOf(OUTCOMES as unknown as readonly [(typeof OUTCOMES)[number]]);
const names = z.strictObject({ queue: text, owner: text, id: z.string("not a text") });

/** Selects tasks: at least one of these, which the client checks. */
export const FILTER = {
  ...conditionShape({
    name: z.string("not a text"),
    text: z.string("not a text"),
    flag: z.boolean("not true or false"),
    state: oneOf(TASK_STATES as unknown as readonly [(typeof TASK_STATES)[number]]),
    outcomes: z.union([outcome, z.array(outcome)]),
  }),
  tasks: z
    .array(z.union([z.string(), names], "neither a name nor an object with an id"), "not a list")
    .exactOptional(),
};
type Filter = z.output<z.ZodObject<typeof FILTER>>;

const tags = z.array(z.string("not a text"), "not a list of texts").exactOptional();

/** The filter of a body, and the rest of it. */
export function apart<Body extends Filter>({ tasks, ...body }: Body) {
  const how = { ...body };
  for (const name of CONDITION_NAMES) delete how[name];
  return {
    filter: { ...conditionsIn(body), tasks: tasks as TaskRef[] | undefined },
    how: how as Omit<typeof body, ConditionName>,
  };
}

const RESUME_MANY = z.strictObject({
  ...FILTER,
  ...{ note: text, pausedBy: text, plan: flag, dryRun: flag },
  from: oneOf(["now", "catch-up", "latest", "all"]).exactOptional(),
  perMinute: z.number("not a number").exactOptional(),
});

/** A change of all tasks that match. Each answers with their number and a sample; so does a dry run. */
export const manyEndpoints = {
  pause: endpoint(
    { body: z.strictObject({ ...FILTER, ...PAUSE.shape, dryRun: flag }), answer: BULK },
    async ({ client, body }) => {
      const { filter, how } = apart(body);
      return ok(await client.bulk.pause(filter, how));
    },
  ),
  resume: endpoint({ body: RESUME_MANY, answer: RESUMED }, async ({ client, body }) => {
    const { filter, how } = apart(body);
    const { note, pausedBy, plan, ...rest } = how;
    const paused = { ...filter, note, pausedBy };
    if (!plan) return ok(await client.bulk.resume(paused, rest));
    const [other] = Object.keys(rest);
    if (other !== undefined)
      throw new CarillonError("INVALID_OPTION", "given with plan.", {
        field: other,
        remedy: "Leave it out.",
      });
    return ok(await client.bulk.resumePlan(paused));
  }),
  trigger: endpoint(
    { body: z.strictObject({ ...FILTER, ...TRIGGER.shape, dryRun: flag }), answer: BULK },
    async ({ client, body }) => {
      const { filter, how } = apart(body);
      return ok(await client.bulk.trigger(filter, how));
    },
  ),
  tag: endpoint(
    { body: z.strictObject({ ...FILTER, add: tags, remove: tags, dryRun: flag }), answer: BULK },
    async ({ client, body }) => {
      const { filter, how } = apart(body);
      const { add, remove, ...rest } = how;
      return ok(await client.bulk.tag(filter, { add, remove }, rest));
    },
  ),
  remove: endpoint(
    { body: z.strictObject({ ...FILTER, dryRun: flag }), answer: BULK },
    async ({ client, body }) => {
      const { filter, how } = apart(body);
      return ok(await client.bulk.delete(filter, how));
    },
  ),
  cancel: endpoint(
    { body: z.strictObject({ ...FILTER, dryRun: flag }), answer: CANCELLED },
    async ({ client, body }) => {
      const { filter, how } = apart(body);
      return ok(await client.runs.cancelAll(filter, how));
    },
  ),
};
