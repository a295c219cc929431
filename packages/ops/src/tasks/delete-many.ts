import { z } from "zod";
import { bulk, bulkResult } from "../bulk/bulk.js";
import { checkedFilter, filter } from "../bulk/filter.js";
import { operation } from "../operation.js";
import { dryRun } from "../shapes.js";

export const deleteMany = operation({
  http: "POST /tasks/delete",
  role: "admin",
  reach: "owner",
  logs: "delete",
  summary:
    "Deletes all tasks that match, with their records; those of an owner with the deliveries of its alerts, unless `deliveries` is false.",
  input: z.strictObject({ ...filter, dryRun }),
  output: bulkResult,
  async run(call, { dryRun, ...input }) {
    const { deliveries = true, ...checked } = checkedFilter(call.scope, input);
    const act = (_: unknown, name: Parameters<typeof call.store.tasks.delete>[0]) =>
      call.store.tasks.delete(name);
    return bulk(call, { filter: { ...checked, deliveries }, dryRun, act });
  },
});
