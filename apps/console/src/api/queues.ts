import { z } from "zod";
import { CHANGED, COUNT, LIMITS, QUEUES } from "./answers.js";
import { endpoint, ok } from "./route.js";
import { PAUSE } from "./verbs.js";

const LIMIT = z.strictObject({ runs: z.number("not a number, or null").nullable() });

/** Queues as a whole. */
export const queueEndpoints = {
  list: endpoint({ answer: QUEUES }, async ({ client }) => ok({ queues: await client.queues.list() })),
  pause: endpoint({ body: PAUSE, answer: CHANGED }, async ({ client, path, body }) =>
    ok({ changed: await client.queues.pause(path["queue"]!, body) }),
  ),
  resume: endpoint({ answer: CHANGED }, async ({ client, path }) =>
    ok({ changed: await client.queues.resume(path["queue"]!) }),
  ),
  limits: endpoint({ answer: LIMITS }, async ({ client, path }) =>
    ok({ limits: await client.queues.limits(path["queue"]!) }),
  ),
  setLimit: endpoint({ body: LIMIT, answer: CHANGED }, async ({ client, path, body }) =>
    ok({ changed: await client.queues.setLimit(path["queue"]!, path["owner"]!, body.runs) }),
  ),
  remove: endpoint({ answer: COUNT }, async ({ client, path }) =>
    ok({ count: await client.queues.delete(path["queue"]!) }),
  ),
};
