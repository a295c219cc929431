import { assertName, invalid } from "@carillon/core/internal";
import { TaskWriter } from "@carillon/sdk/internal";
import { z } from "zod";
import { bulk, bulkResult } from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter } from "../bulk/filter.js";
import { operation } from "../operation.js";
import { given } from "../shapes.js";

const tags = z.array(given, "not a list of tags").readonly().optional();

export const tagMany = operation({
  http: "POST /tasks/tag",
  role: "admin",
  reach: "owner",
  logs: "put",
  once: {
    known: "state",
    leaves: "whole",
    against: [["tasks.tagMany", { add: undefined, remove: ["more"] }]],
  },
  example: { tag: "due", add: ["more"] },
  summary:
    "Adds tags to all tasks that match, and removes others; tasks that have them so already are not counted.",
  input: z.strictObject({
    ...filter,
    add: tags.describe("This tag."),
    remove: tags.describe("This tag."),
    dryRun,
  }),
  output: bulkResult,
  async run(call, { add = [], remove = [], dryRun, ...input }) {
    for (const [field, tags] of Object.entries({ add, remove }))
      for (const tag of tags) assertName(tag, field);
    if (add.length + remove.length === 0) throw invalid("add", "no tags.", "Give tags to add or to remove.");
    const tagged = (tags: readonly string[]) =>
      [...new Set([...tags, ...add])].filter((tag) => !remove.includes(tag));
    const { scope, by } = call;
    // The payload stays as it is, whatever its size.
    const writer = new TaskWriter(scope, undefined, Number.MAX_SAFE_INTEGER);
    return bulk(call, {
      ...{ filter: checkedFilter(scope, input), dryRun },
      isMeant: ({ definition: { tags } }) => tagged(tags).join() !== tags.join(),
      act: async (_, name) => {
        const edited = await writer.edit(name, (task) => ({ ...task, tags: tagged(task.tags ?? []) }), {
          by,
          many: true,
        });
        return edited.outcome === "updated";
      },
      details: { add: [...add], remove: [...remove] },
    });
  },
});
