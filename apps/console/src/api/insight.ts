import { EXPLANATION, STATS, STATS_OF_ALL, STRIPS, TICKS } from "./answers.js";
import { EXPLAIN_QUERY, LIST_QUERY, STRIPS_QUERY, TICKS_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";
import { taskOf } from "./tasks.js";

/** Past decisions and runs of a task, and coming occurrences. */
export const insightEndpoints = {
  stats: endpoint({ answer: STATS }, async (asked) => ok(await asked.client.runs.stats(taskOf(asked)))),
  statsOfAll: endpoint({ query: LIST_QUERY, answer: STATS_OF_ALL }, async ({ client, query }) =>
    ok(await client.runs.statsOfAll(query)),
  ),
  explain: endpoint({ query: EXPLAIN_QUERY, answer: EXPLANATION }, async (asked) =>
    ok(await asked.client.explain(taskOf(asked), asked.query.time)),
  ),
  ticks: endpoint({ query: TICKS_QUERY, answer: TICKS }, async (asked) =>
    ok(await asked.client.ticks(taskOf(asked), asked.query)),
  ),
  strips: endpoint({ query: STRIPS_QUERY, answer: STRIPS }, async ({ client, query: { task, ...how } }) =>
    ok({ tasks: await client.lastTicks(task, how) }),
  ),
};
