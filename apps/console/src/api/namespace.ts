import type { DefaultsScope, QuotaInput, QuotaScope } from "@carillon/sdk";
import { z } from "zod";
import { version } from "../command-line.js";
import { BOARD_PATH } from "../paths.js";
import { endpoint, ok } from "./route.js";

const POLICIES = z.strictObject({ policies: z.looseObject({}).nullable() });
const number = z.number("not a number").exactOptional();
const QUOTA = z.strictObject({
  tasks: number,
  interval: z.union([z.string(), z.number()], "not a duration").exactOptional(),
  waiting: number,
});
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
  doctor: endpoint({}, async ({ client }) => ok(await client.doctor())),
  nodes: endpoint({}, async ({ client }) => ok({ nodes: await client.nodes.list() })),
  defaults: endpoint({}, async ({ client }) => ok({ defaults: await client.defaults.list() })),
  setDefaults: endpoint({ body: POLICIES }, async ({ client, path, body }) =>
    ok({ changed: await client.defaults.set(path["scope"] as DefaultsScope, body.policies) }),
  ),
  quotas: endpoint({}, async ({ client }) => ok({ quotas: await client.quotas.list() })),
  // An empty quota is none.
  setQuota: endpoint({ body: QUOTA }, async ({ client, path, body }) =>
    ok({ changed: await client.quotas.set(path["scope"] as QuotaScope, body as QuotaInput) }),
  ),
  workers: endpoint({}, async ({ client }) => ok({ workers: await client.workers.list() })),
  types: endpoint({}, async ({ client }) => ok({ types: await client.types.list() })),
  allowTypes: endpoint({ body: TYPES }, async ({ client, body: { types } }) => {
    await client.types.allow(types);
    return ok({ types: await client.types.list() });
  }),
};
