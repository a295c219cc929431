import type { QuotaScope } from "@carillon/core";
import { assertQuotaScope, parseQuota } from "@carillon/core/internal";
import { shown } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { changed, duration, wholeNumber } from "../shapes.js";

/**
 * Sets the quota of the namespace (`all`), of an owner (`owner:acme`), or of each owner without an own one (`owner:*`). A task obeys its
 * owner's and the namespace's. Puts beyond `tasks` or `interval` are refused with `QUOTA_TASKS` and `QUOTA_INTERVAL`; stored tasks stay,
 * and their times that are too close are skipped. While `waiting` jobs wait in a queue, due times of its tasks are skipped, and triggers
 * refused with `QUOTA_WAITING`. The skips give `quota` as the reason of a skip.
 */
export const setQuota = operation({
  http: "PUT /quotas/:scope",
  role: "admin",
  reach: "namespace",
  logs: "quota",
  once: { known: "state", leaves: "whole", against: [["quotas.set", { tasks: 200 }]] },
  example: { scope: "owner:acme", tasks: 100 },
  summary:
    "Replaces the quota of a scope. A bound that is left out is unlimited; without any, the quota is removed.",
  input: z.strictObject({
    scope: z.custom<QuotaScope>().meta({
      type: "string",
      description: "all, owner:NAME, or owner:* for each owner without an own quota.",
    }),
    tasks: wholeNumber.optional().describe("Most tasks."),
    interval: duration.optional().describe("Shortest time between two occurrences of a task: `10s`."),
    waiting: wholeNumber.optional().describe("Most jobs that wait in each queue."),
  }),
  output: changed,
  async run({ store, log }, { scope, ...quota }) {
    const checked = assertQuotaScope(scope);
    const after = parseQuota(quota);
    const before = (await store.freezes.setQuota(checked, after)) ?? {};
    const changed = JSON.stringify(before) !== JSON.stringify(after);
    if (changed)
      log({}, { before: shown({ ...before }), after: shown({ ...after }), details: { of: checked } });
    return { changed };
  },
});
