import { z } from "zod";
import { version } from "../command-line.js";
import { BOARD_PATH } from "../paths.js";
import { endpoint, ok } from "./route.js";

const text = z.string();
const ME = z.object({
  name: text,
  role: z.enum(["viewer", "operator", "admin"]),
  owners: z.array(text).optional(),
  namespace: text,
  version: text,
  now: z.int(),
  signsIn: z.boolean(),
  bullBoard: text.optional(),
  traceUrl: text.optional(),
});

/** The requester. */
export const namespaceEndpoints = {
  me: endpoint({ answer: ME }, async ({ client, site, identity: { name, role, owners } }) =>
    ok({
      name,
      role,
      owners,
      namespace: client.namespace,
      version: version(),
      ...(owners === undefined && site.bullBoard && { bullBoard: `${BOARD_PATH.slice(1)}/` }),
      signsIn: site.signsIn,
      traceUrl: site.traceUrl,
      now: await client.serverTime(),
    }),
  ),
};
