import type { Client } from "@carillon/sdk";
import { z } from "zod";
import { endpoint, ok } from "./route.js";
import { PAUSE, RESUME } from "./verbs.js";

const name = z.string("not a text").exactOptional();
/** Which tasks: at least one of these, which the client checks. */
const FILTER = { owner: name, tag: name, queue: name };

/** What can be done with all tasks of an owner, a tag or a queue; each answers with how many it changed. */
export function manyEndpoints(client: Client) {
  return {
    pause: endpoint(
      { body: z.strictObject({ ...FILTER, ...PAUSE.shape }) },
      async ({ body: { owner, tag, queue, ...why } }) =>
        ok({ count: await client.pauseAll({ owner, tag, queue }, why) }),
    ),
    resume: endpoint(
      { body: z.strictObject({ ...FILTER, ...RESUME.shape }) },
      async ({ body: { owner, tag, queue, ...how } }) =>
        ok({ count: await client.resumeAll({ owner, tag, queue }, how) }),
    ),
    remove: endpoint({ body: z.strictObject(FILTER) }, async ({ body }) =>
      ok({ count: await client.deleteAll(body) }),
    ),
  };
}
