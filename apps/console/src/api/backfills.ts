import { z } from "zod";
import { API_PATH } from "../paths.js";
import { BACKFILL as BACKFILL_ANSWER, BACKFILLS, CHANGED, STARTED, STARTED_ALL } from "./answers.js";
import { apart, FILTER } from "./many.js";
import { BACKFILLS_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";
import { taskOf } from "./tasks.js";
import { OVERLAP } from "./verbs.js";

const text = z.string("not a text").exactOptional();
/** UTC ms, or ISO 8601 with an offset: the client checks it. */
const time = z.union([z.number(), z.string()], "not a time");

const RANGE = {
  from: time,
  to: time,
  overlap: OVERLAP,
  only: z
    .enum(
      ["failed", "frozen", "missed", "paused", "overlap"],
      "not one of failed, frozen, missed, paused, overlap",
    )
    .exactOptional(),
  dryRun: z.boolean("not true or false").exactOptional(),
};
const BACKFILL = z.strictObject({ ...RANGE, every: text });
const MANY = z.strictObject({ ...FILTER, ...RANGE, perMinute: z.number("not a number").exactOptional() });

/** Past occurrences of a task that are run. */
export const backfillEndpoints = {
  add: endpoint({ body: BACKFILL, answer: STARTED, status: [200, 202] }, async (asked) => {
    const put = await asked.client.backfills.start(taskOf(asked), asked.body);
    // A dry run, or a backfill without occurrences.
    if (put.id === undefined) return ok(put);
    return { status: 202, location: `${API_PATH}/backfills/${put.id}`, body: put };
  }),
  addAll: endpoint({ body: MANY, answer: STARTED_ALL, status: [200, 202] }, async ({ client, body }) => {
    const { filter, how } = apart(body);
    const started = await client.backfills.startAll(filter, how);
    return { status: started.batch === undefined ? 200 : 202, body: started };
  }),
  list: endpoint({ query: BACKFILLS_QUERY, answer: BACKFILLS }, async ({ client, query }) =>
    ok({ backfills: await client.backfills.list(query) }),
  ),
  get: endpoint({ answer: BACKFILL_ANSWER }, async ({ client, path }) =>
    ok(await client.backfills.get(path["id"]!)),
  ),
  cancel: endpoint({ answer: CHANGED }, async ({ client, path }) =>
    ok({ changed: await client.backfills.cancel(path["id"]!) }),
  ),
};
