import type { Client } from "@carillon/sdk";
import { z } from "zod";
import { endpoint, ok } from "./route.js";

const TYPES = z.strictObject({ types: z.array(z.string("not a text"), "not a list of texts") });

/** Nodes and task types of the namespace. */
export function namespaceEndpoints(client: Client) {
  return {
    nodes: endpoint({}, async () => ok({ nodes: await client.nodes.list() })),
    types: endpoint({}, async () => ok({ types: await client.types.list() })),
    allowTypes: endpoint({ body: TYPES }, async ({ body: { types } }) => {
      await client.types.allow(types);
      return ok({ types: await client.types.list() });
    }),
  };
}
