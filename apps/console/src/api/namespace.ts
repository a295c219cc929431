import type { Client } from "@carillon/sdk";
import { z } from "zod";
import { endpoint, ok } from "./route.js";

const TYPES = z.strictObject({ types: z.array(z.string("not a text"), "not a list of texts") });

/** What there is in the namespace. */
export function namespaceEndpoints(client: Client) {
  return {
    nodes: endpoint({}, async () => ok({ nodes: await client.nodes() })),
    queues: endpoint({}, async () => {
      const names = await client.queues();
      const counts = await Promise.all(names.map((queue) => client.count({ queue })));
      return ok({ queues: names.map((name, i) => ({ name, tasks: counts[i] })) });
    }),
    types: endpoint({}, async () => ok({ types: await client.allowedTypes() })),
    allowTypes: endpoint({ body: TYPES }, async ({ body: { types } }) => {
      await client.allowTypes(types);
      return ok({ types: await client.allowedTypes() });
    }),
  };
}
