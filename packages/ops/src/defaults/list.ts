import type { DefaultsScope, Policies } from "@carillon/core";
import { z } from "zod";
import { operation } from "../operation.js";

export const listDefaults = operation({
  http: "GET /defaults",
  role: "viewer",
  reach: "namespace",
  summary:
    "Lists the policies that a put or an enqueue fills in if the task has none, by scope. Those of a type override those of an owner, which override those of all. Stored tasks do not change until they are put again, but default alerts hold for them too.",
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
