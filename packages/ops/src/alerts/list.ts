import { ALERT_KINDS } from "@carillon/core";
import { assertEntry, wholeNumber } from "@carillon/sdk/internal";
import type { StoredChange } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { nextPage, oneOf, page, time } from "../shapes.js";
import { alert } from "./alert.js";

const record = alert.extend({
  recorded: time.describe("Time of its delivery, or of its suppression."),
  to: z.array(z.string()).readonly().describe("Hosts of webhooks and e-mail addresses that it was sent to."),
  silenced: z.string().optional().describe("The silence that suppressed its delivery."),
});
type AlertRecord = z.output<typeof record>;

export const listAlerts = operation({
  http: "GET /alerts",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the last alerts, newest first, of at most 10,000: those that were delivered, if only to `onAlert`, and those that were silenced.",
  input: z.strictObject({
    kind: oneOf(ALERT_KINDS).optional().describe("Only alerts of this kind."),
    ...page,
  }),
  output: z.object({ alerts: z.array(record), cursor: nextPage }),
  async run({ store, owner }, { kind, limit: most = 100, cursor }) {
    const limit = wholeNumber(most, "limit", 1, 1_000);
    const alerts: AlertRecord[] = [];
    for await (const stored of store.alertLog.newest(assertEntry(cursor))) {
      const alert = decode(stored);
      if (!alert || (owner !== undefined && alert.task?.owner !== owner)) continue;
      if (kind !== undefined && alert.kind !== kind) continue;
      alerts.push(alert);
      if (alerts.length === limit) return { alerts, cursor: stored.id };
    }
    return { alerts };
  },
});

function decode({ at, entry }: StoredChange): AlertRecord | undefined {
  try {
    const { to = [], ...alert } = JSON.parse(entry) as Omit<AlertRecord, "recorded">;
    return { ...alert, recorded: at, to };
  } catch {
    return undefined;
  }
}
