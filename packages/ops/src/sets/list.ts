import { z } from "zod";
import { operation } from "../operation.js";
import { set } from "./set.js";

export const listSets = operation({
  http: "GET /sets",
  role: "viewer",
  reach: "namespace",
  summary: "Lists the sets of tasks that are defined as code.",
  input: z.strictObject({}),
  output: z.object({ sets: z.array(set) }),
  run: async ({ store }) => ({ sets: await store.sets.list() }),
});
