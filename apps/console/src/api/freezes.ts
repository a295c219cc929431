import type { FreezeInput } from "@carillon/sdk";
import { z } from "zod";
import { FREEZE as FREEZE_ANSWER, FREEZES } from "./answers.js";
import { endpoint, ok } from "./route.js";

const text = z.string("not a text").exactOptional();
const time = z.union([z.string(), z.number()], "not a time").exactOptional();
const FREEZE = z.strictObject({
  owner: text,
  tag: text,
  queue: text,
  all: z.boolean("not true or false").exactOptional(),
  from: time,
  until: time,
  schedule: z.record(z.string(), z.unknown(), "not an object").exactOptional(),
  for: z.union([z.string(), z.number()], "not a duration").exactOptional(),
  reason: text,
});

/** Freezes: pauses of an owner, a tag, a queue, or all tasks. */
export const freezeEndpoints = {
  list: endpoint({ answer: FREEZES }, async ({ client }) => ok({ freezes: await client.freezes.list() })),
  // The client checks the schedule itself.
  add: endpoint({ body: FREEZE, answer: FREEZE_ANSWER, status: [201] }, async ({ client, body }) => {
    return { status: 201, body: await client.freezes.put(body as unknown as FreezeInput) };
  }),
  remove: endpoint({}, async ({ client, path }) => {
    await client.freezes.delete(path["id"]!);
    return { status: 204 };
  }),
};
