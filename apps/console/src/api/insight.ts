import { STATS, STATS_OF_ALL } from "./answers.js";
import { LIST_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";
import { taskOf } from "./tasks.js";

/** Statistics of tasks. */
export const insightEndpoints = {
  stats: endpoint({ answer: STATS }, async (asked) => ok(await asked.client.runs.stats(taskOf(asked)))),
  statsOfAll: endpoint({ query: LIST_QUERY, answer: STATS_OF_ALL }, async ({ client, query }) =>
    ok(await client.runs.statsOfAll(query)),
  ),
};
