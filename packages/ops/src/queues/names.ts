import { z } from "zod";
import { operation } from "../operation.js";
import { namesOf } from "./queue.js";

export const queueNames = operation({
  http: "GET /queue-names",
  role: "viewer",
  reach: "local",
  summary:
    "Lists the names of the queues that have tasks or runs; for a caller that is bound to an owner, of its tasks.",
  input: z.strictObject({}),
  output: z.object({ names: z.array(z.string()) }),
  run: async (call) => ({ names: await namesOf(call) }),
});
