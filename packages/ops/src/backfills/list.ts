import { assertName } from "@carillon/core/internal";
import { wholeNumber } from "@carillon/sdk/internal";
import type { Backfill } from "@carillon/store";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { given, oneOf, page } from "../shapes.js";
import { backfill, STATES, withoutRuns } from "./backfill.js";

export const listBackfills = operation({
  http: "GET /backfills",
  role: "viewer",
  reach: "owner",
  summary: "Lists the backfills of the last 7 days, newest first.",
  input: z.strictObject({
    queue: conditions.queue,
    owner: conditions.owner,
    state: oneOf(STATES).optional().describe("In this state."),
    batch: given.optional().describe("That one call for many tasks started."),
    limit: page.limit,
  }),
  output: z.object({ backfills: z.array(backfill) }),
  async run({ scope, store, owner: bound }, { queue: only, owner, state, batch, limit: most = 100 }) {
    const limit = wholeNumber(most, "limit", 1, 1_000);
    if (owner !== undefined) assertName(owner, "owner");
    if (bound !== undefined && owner !== undefined && owner !== bound) return { backfills: [] };
    const matches = (one: Backfill) =>
      (state === undefined || one.state === state) &&
      (batch === undefined || one.batch === batch) &&
      [bound, owner].every((name) => name === undefined || one.task.owner === name);
    let newest: Backfill[] = [];
    for (const queue of await scope.queuesOf(only)) {
      for await (const page of store.backfills.all(queue))
        newest = [...newest, ...page.filter(matches)].sort(byAge).slice(0, limit);
    }
    return { backfills: newest.map(withoutRuns) };
  },
});

function byAge(a: Backfill, b: Backfill): number {
  return b.created - a.created || (a.id < b.id ? -1 : 1);
}
