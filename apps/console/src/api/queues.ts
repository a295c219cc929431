import { z } from "zod";
import { CHANGED, COUNT, LIMITS, PAUSED_QUEUE, QUEUES } from "./answers.js";
import { endpoint, ok } from "./route.js";
import { PAUSE } from "./verbs.js";

const LIMIT = z.strictObject({ runs: z.number("not a number, or null").nullable() });
const PAUSE_QUEUE = z.strictObject({
  ...PAUSE.shape,
  dryRun: z.boolean("not true or false").exactOptional(),
});

/** Queues as a whole. */
export const queueEndpoints = {
  list: endpoint({ answer: QUEUES }, async ({ client }) => ok({ queues: await client.queues.list() })),
  pause: endpoint({ body: PAUSE_QUEUE, answer: PAUSED_QUEUE }, async ({ client, path, body }) => {
    const { dryRun, ...options } = body;
    const queue = path["queue"]!;
    const changed = !dryRun && (await client.queues.pause(queue, options));
    return ok({ changed, holds: await client.queues.previewPause(queue) });
  }),
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
