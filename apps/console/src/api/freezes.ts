import type { FreezeInput } from "@carillon/sdk";
import { z } from "zod";
import { FREEZES, PUT_FREEZE } from "./answers.js";
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
  dryRun: z.boolean("not true or false").exactOptional(),
});

/** Freezes: pauses of an owner, a tag, a queue, or all tasks. */
export const freezeEndpoints = {
  list: endpoint({ answer: FREEZES }, async ({ client }) => ok({ freezes: await client.freezes.list() })),
  // The client checks the schedule itself.
  add: endpoint({ body: FREEZE, answer: PUT_FREEZE, status: [201, 200] }, async ({ client, body }) => {
    const { dryRun, ...rest } = body;
    const input = rest as unknown as FreezeInput;
    if (dryRun) return ok({ holds: await client.freezes.preview(input) });
    // Counts last: the hold must not wait for it.
    const freeze = await client.freezes.put(input);
    return { status: 201, body: { ...freeze, holds: await client.freezes.preview(input) } };
  }),
  remove: endpoint({}, async ({ client, path }) => {
    await client.freezes.delete(path["id"]!);
    return { status: 204 };
  }),
};
