import { z } from "zod";
import { operation } from "../operation.js";

export const taskTypes = z.object({ types: z.array(z.string()) });

export const listTypes = operation({
  http: "GET /types",
  role: "viewer",
  reach: "namespace",
  summary: "Lists the task types that may be put into the namespace, by any client; an empty list: any type.",
  input: z.strictObject({}),
  output: taskTypes,
  async run({ store }) {
    return { types: await store.registry.types() };
  },
});
