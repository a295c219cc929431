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
      const about = async (name: string) => {
        const [tasks, outcomes] = await Promise.all([client.count({ queue: name }), client.outcomes(name)]);
        return { name, tasks, outcomes };
      };
      return ok({ queues: await Promise.all(names.map(about)) });
    }),
    types: endpoint({}, async () => ok({ types: await client.allowedTypes() })),
    allowTypes: endpoint({ body: TYPES }, async ({ body: { types } }) => {
      await client.allowTypes(types);
      return ok({ types: await client.allowedTypes() });
    }),
  };
}
