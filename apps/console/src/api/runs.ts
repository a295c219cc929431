import { CHANGED, ITEMS, RETRIED_ITEMS, RUN_DETAILS, RUNNING, SUMMARY } from "./answers.js";
import { ITEMS_QUERY, RUNNING_QUERY, SUMMARY_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";

/**
 * Runs in progress, and one run, in any queue. A run's id contains an `@`, which a path may contain unchanged or as
 * `%40`.
 */
export const runEndpoints = {
  list: endpoint({ query: RUNNING_QUERY, answer: RUNNING }, async ({ client, query }) =>
    ok({ runs: await client.runs.list(query) }),
  ),
  summary: endpoint({ query: SUMMARY_QUERY, answer: SUMMARY }, async ({ client, query }) =>
    ok(await client.runs.summary(query)),
  ),
  get: endpoint({ answer: RUN_DETAILS }, async ({ client, path }) => ok(await client.runs.get(path["id"]!))),
  items: endpoint({ query: ITEMS_QUERY, answer: ITEMS }, async ({ client, path, query }) =>
    ok(await client.runs.items(path["id"]!, query)),
  ),
  retryItems: endpoint({ answer: RETRIED_ITEMS, status: [202] }, async ({ client, path }) => ({
    status: 202,
    body: await client.runs.retryItems(path["id"]!),
  })),
  cancel: endpoint({ answer: CHANGED }, async ({ client, path }) =>
    ok({ changed: await client.runs.cancel(path["id"]!) }),
  ),
};
