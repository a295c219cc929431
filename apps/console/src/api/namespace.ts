import type { Client } from "@carillon/sdk";
import { endpoint, ok } from "./route.js";

/** What there is in the namespace. */
export function namespaceEndpoints(client: Client) {
  return {
    nodes: endpoint({}, async () => ok({ nodes: await client.nodes() })),
    queues: endpoint({}, async () => {
      const names = await client.queues();
      const counts = await Promise.all(names.map((queue) => client.count({ queue })));
      return ok({ queues: names.map((name, i) => ({ name, tasks: counts[i] })) });
    }),
  };
}
