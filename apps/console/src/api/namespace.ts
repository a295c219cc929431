import type { DefaultsScope, QuotaInput, QuotaScope } from "@carillon/sdk";
import { z } from "zod";
import { version } from "../command-line.js";
import { BOARD_PATH } from "../paths.js";
import {
  CHANGED,
  DEFAULTS,
  DIAGNOSIS,
  ME,
  NODES,
  QUOTAS,
  STATUS,
  TYPES as TYPES_ANSWER,
  WORKERS,
} from "./answers.js";
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
  me: endpoint({ answer: ME }, async ({ client, site, identity: { name, role, owners } }) =>
    ok({
      ...{ name, role, owners },
      namespace: client.namespace,
      version: version(),
      ...(owners === undefined && site.bullBoard && { bullBoard: `${BOARD_PATH.slice(1)}/` }),
      signsIn: site.signsIn,
      now: await client.serverTime(),
    }),
  ),
  status: endpoint({ answer: STATUS }, async ({ client }) => ok(await client.status())),
  doctor: endpoint({ answer: DIAGNOSIS }, async ({ client }) => ok(await client.doctor())),
  nodes: endpoint({ answer: NODES }, async ({ client }) => ok({ nodes: await client.nodes.list() })),
  defaults: endpoint({ answer: DEFAULTS }, async ({ client }) =>
    ok({ defaults: await client.defaults.list() }),
  ),
  setDefaults: endpoint({ body: POLICIES, answer: CHANGED }, async ({ client, path, body }) =>
    ok({ changed: await client.defaults.set(path["scope"] as DefaultsScope, body.policies) }),
  ),
  quotas: endpoint({ answer: QUOTAS }, async ({ client }) => ok({ quotas: await client.quotas.list() })),
  // An empty quota removes it.
  setQuota: endpoint({ body: QUOTA, answer: CHANGED }, async ({ client, path, body }) =>
    ok({ changed: await client.quotas.set(path["scope"] as QuotaScope, body as QuotaInput) }),
  ),
  workers: endpoint({ answer: WORKERS }, async ({ client }) => ok({ workers: await client.workers.list() })),
  types: endpoint({ answer: TYPES_ANSWER }, async ({ client }) => ok({ types: await client.types.list() })),
  allowTypes: endpoint({ body: TYPES, answer: TYPES_ANSWER }, async ({ client, body: { types } }) => {
    await client.types.allow(types);
    return ok({ types: await client.types.list() });
  }),
};
