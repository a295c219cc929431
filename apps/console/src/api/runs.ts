import type { Client } from "@carillon/sdk";
import { z } from "zod";
import { endpoint, ok } from "./route.js";

const CANCEL = z.strictObject({ by: z.string("not a text").exactOptional() });

/** One run, wherever it is. Its id holds an `@`, which may stand in a path as it is, or as `%40`. */
export function runEndpoints(client: Client) {
  return {
    get: endpoint({}, async ({ path }) => ok(await client.run(path["id"]!))),
    cancel: endpoint({ body: CANCEL }, async ({ path, body }) =>
      ok({ changed: await client.cancel(path["id"]!, body) }),
    ),
  };
}
