import type { Client } from "@carillon/sdk";
import { z } from "zod";
import { ITEMS_QUERY, RUNNING_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";

const CANCEL = z.strictObject({ by: z.string("not a text").exactOptional() });

/** The runs that are under way; and one run, in any queue. Its id contains an `@`, which a path may contain as it is, or as `%40`. */
export function runEndpoints(client: Client) {
  return {
    list: endpoint({ query: RUNNING_QUERY }, async ({ query }) =>
      ok({ runs: await client.runs.list(query) }),
    ),
    get: endpoint({}, async ({ path }) => ok(await client.runs.get(path["id"]!))),
    items: endpoint({ query: ITEMS_QUERY }, async ({ path, query }) =>
      ok(await client.runs.items(path["id"]!, query)),
    ),
    retryItems: endpoint({}, async ({ path }) => ({
      status: 202,
      body: await client.runs.retryItems(path["id"]!),
    })),
    cancel: endpoint({ body: CANCEL }, async ({ path, body }) =>
      ok({ changed: await client.runs.cancel(path["id"]!, body) }),
    ),
  };
}
