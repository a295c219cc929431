import { z } from "zod";
import { operation } from "../operation.js";

/** Reads the names of at most a million keys of each master, which a user of the shipped ACL may not (`REDIS_AUTH`). */
export const listNamespaces = operation({
  http: "GET /namespaces",
  role: "admin",
  reach: "namespace",
  summary: "Lists the namespaces of this Redis that have queues, this one included.",
  input: z.strictObject({}),
  output: z.object({ namespaces: z.array(z.string()) }),
  run: async ({ store }) => ({ namespaces: await store.namespaces() }),
});
