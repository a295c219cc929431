import type { DefaultsScope } from "@carillon/sdk";
import { z } from "zod";
import { version } from "../command-line.js";
import { BOARD_PATH } from "../paths.js";
import { endpoint, ok } from "./route.js";

const POLICIES = z.strictObject({ policies: z.looseObject({}).nullable() });
const TYPES = z.strictObject({ types: z.array(z.string("not a text"), "not a list of texts") });

/** The status of the namespace, its nodes, workers and task types. */
export const namespaceEndpoints = {
  me: endpoint({}, async ({ client, identity: { name, role, owners } }) =>
    ok({
      ...{ name, role, owners },
      namespace: client.namespace,
      version: version(),
      ...(owners === undefined && { bullBoard: `${BOARD_PATH.slice(1)}/` }),
      now: await client.serverTime(),
    }),
  ),
  status: endpoint({}, async ({ client }) => ok(await client.status())),
  nodes: endpoint({}, async ({ client }) => ok({ nodes: await client.nodes.list() })),
  defaults: endpoint({}, async ({ client }) => ok({ defaults: await client.defaults.list() })),
  setDefaults: endpoint({ body: POLICIES }, async ({ client, path, body }) =>
    ok({ changed: await client.defaults.set(path["scope"] as DefaultsScope, body.policies) }),
  ),
  workers: endpoint({}, async ({ client }) => ok({ workers: await client.workers.list() })),
  types: endpoint({}, async ({ client }) => ok({ types: await client.types.list() })),
  allowTypes: endpoint({ body: TYPES }, async ({ client, body: { types } }) => {
    await client.types.allow(types);
    return ok({ types: await client.types.list() });
  }),
};
