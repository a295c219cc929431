import type { QuotaScope } from "@carillon/core";
import { z } from "zod";
import { operation } from "../operation.js";
import { count } from "../shapes.js";

const quota = z.object({
  scope: z.custom<QuotaScope>().meta({ type: "string" }),
  tasks: count.optional(),
  interval: count.optional().describe("Milliseconds."),
  waiting: count.optional(),
});

export const listQuotas = operation({
  http: "GET /quotas",
  role: "viewer",
  reach: "namespace",
  summary:
    "Lists the quotas of the namespace and of owners. Puts beyond them are refused; times beyond them are skipped, with the reason quota.",
  input: z.strictObject({}),
  output: z.object({ quotas: z.array(quota) }),
  async run({ store }) {
    const quotas = [...(await store.freezes.quotas())].map(([scope, quota]) => ({ scope, ...quota }));
    return { quotas: quotas.sort((a, b) => (a.scope < b.scope ? -1 : 1)) };
  },
});
