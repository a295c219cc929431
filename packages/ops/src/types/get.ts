import { assertName } from "@carillon/core/internal";
import { payloadSchemas } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, given } from "../shapes.js";

export const getType = operation({
  http: "GET /types/:type",
  role: "viewer",
  reach: "owner",
  summary:
    "Gives the JSON Schemas of a task type's payload that live workers of the queue publish. A put or a trigger whose payload none of them accepts is refused, unless a worker has the type without a schema.",
  input: z.strictObject({ type: given, queue: given.describe("The queue of its workers.") }),
  output: z.object({
    schemas: z
      .array(z.object({ schema: z.custom<object>().meta({ type: "object" }), workers: count }))
      .describe("Of the worker that started last first; during a deployment there may be two."),
    without: count.describe("Live workers of the queue that have the type without a schema."),
  }),
  async run({ store, scope }, { type, queue }) {
    const work = { type: assertName(type, "type"), queue: assertName(queue, "queue") };
    return payloadSchemas(store, scope.coverage, work, true);
  },
});
