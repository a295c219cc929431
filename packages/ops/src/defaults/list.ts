import type { DefaultsScope, Policies } from "@carillon/core";
import { z } from "zod";
import { operation } from "../operation.js";

export const listDefaults = operation({
  http: "GET /defaults",
  role: "viewer",
  reach: "namespace",
  summary: "Lists the policies for tasks that do not have them, by scope.",
  input: z.strictObject({}),
  output: z.object({
    defaults: z
      .custom<Partial<Record<DefaultsScope, Policies>>>()
      .meta({ type: "object", additionalProperties: { type: "object" } }),
  }),
  async run({ store }) {
    return { defaults: Object.fromEntries(await store.registry.defaults()) };
  },
});
