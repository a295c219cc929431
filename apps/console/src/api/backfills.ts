import { z } from "zod";
import { API_PATH } from "../paths.js";
import { endpoint, ok } from "./route.js";
import { taskOf } from "./tasks.js";
import { OVERLAP } from "./verbs.js";

const text = z.string("not a text").exactOptional();
/** UTC ms, or ISO 8601 with an offset: the client checks it. */
const time = z.union([z.number(), z.string()], "not a time");

const BACKFILL = z.strictObject({
  from: time,
  to: time,
  overlap: OVERLAP,
  every: text,
  dryRun: z.boolean("not true or false").exactOptional(),
});

/** Past occurrences of a task that are run. */
export const backfillEndpoints = {
  add: endpoint({ body: BACKFILL }, async (asked) => {
    const put = await asked.client.backfills.start(taskOf(asked), asked.body);
    // Only counted, or there is nothing to do.
    if (put.id === undefined) return ok(put);
    return { status: 202, location: `${API_PATH}/backfills/${put.id}`, body: put };
  }),
  get: endpoint({}, async ({ client, path }) => ok(await client.backfills.get(path["id"]!))),
  cancel: endpoint({}, async ({ client, path }) =>
    ok({ changed: await client.backfills.cancel(path["id"]!) }),
  ),
};
