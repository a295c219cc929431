import { version } from "../command-line.js";
import { BOARD_PATH } from "../paths.js";
import { DIAGNOSIS, ME, STATUS } from "./answers.js";
import { endpoint, ok } from "./route.js";

/** The status of the namespace, its nodes and workers. */
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
};
