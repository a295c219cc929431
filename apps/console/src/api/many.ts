import { z } from "zod";
import { endpoint, ok } from "./route.js";
import { PAUSE, RESUME, text } from "./verbs.js";

const name = z.string("not a text").exactOptional();
/** Filter of tasks: at least one of these, which the client checks. */
const FILTER = { owner: name, tag: name, queue: name };

const dryRun = z.boolean("not true or false").exactOptional();

/** Changes all tasks of an owner, a tag or a queue. Each answers with their number and a sample; so does a dry run. */
export const manyEndpoints = {
  pause: endpoint(
    { body: z.strictObject({ ...FILTER, ...PAUSE.shape, dryRun }) },
    async ({ client, body: { owner, tag, queue, ...how } }) =>
      ok(await client.pauseAll({ owner, tag, queue }, how)),
  ),
  resume: endpoint(
    { body: z.strictObject({ ...FILTER, note: text, pausedBy: text, ...RESUME.shape, dryRun }) },
    async ({ client, body: { owner, tag, queue, note, pausedBy, ...how } }) =>
      ok(await client.resumeAll({ owner, tag, queue, note, pausedBy }, how)),
  ),
  remove: endpoint(
    { body: z.strictObject({ ...FILTER, dryRun }) },
    async ({ client, body: { owner, tag, queue, ...how } }) =>
      ok(await client.deleteAll({ owner, tag, queue }, how)),
  ),
};
