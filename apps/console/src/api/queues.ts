import type { Client } from "@carillon/sdk";
import { endpoint, ok } from "./route.js";
import { PAUSE } from "./verbs.js";

/** Queues as a whole. */
export function queueEndpoints(client: Client) {
  return {
    list: endpoint({}, async () => ok({ queues: await client.queues.list() })),
    pause: endpoint({ body: PAUSE }, async ({ path, body }) =>
      ok({ changed: await client.queues.pause(path["queue"]!, body) }),
    ),
    resume: endpoint({}, async ({ path }) => ok({ changed: await client.queues.resume(path["queue"]!) })),
    remove: endpoint({}, async ({ path }) => ok({ count: await client.queues.delete(path["queue"]!) })),
  };
}
