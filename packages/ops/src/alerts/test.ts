import { randomBytes } from "node:crypto";
import { ALERTS_QUEUE, CarillonError, DEFAULT_OWNER, parseTask } from "@carillon/core";
import { DESTINATIONS, parsePolicies } from "@carillon/core/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { given } from "../shapes.js";

const input = z.strictObject({ url: given.optional(), email: given.optional() });

/** Its run tells whether it arrived: `client.runs.get`. */
export const testAlert = operation({
  http: "POST /alerts/test",
  role: "operator",
  reach: "owner",
  logs: false,
  summary: "Sends a test alert to a webhook or an e-mail address, once, by a worker that delivers alerts.",
  input,
  output: z.object({ run: z.string() }),
  status: [202],
  async run({ store, scope, owner = DEFAULT_OWNER, by }, destination) {
    const { url, email } = checked(destination);
    const at = await store.serverTime();
    const alert = { kind: "test", namespace: store.namespace, at, message: "A test of this destination." };
    const [type, payload] =
      url === undefined
        ? [DESTINATIONS.email.type, { to: email, alerts: [alert], more: 0 }]
        : [DESTINATIONS.url.type, { url, alert }];
    const id = `test-${randomBytes(8).toString("hex")}`;
    const parsed = parseTask({ id, type, queue: ALERTS_QUEUE, owner, schedule: { at }, payload });
    const { registry, claims } = store;
    const entered = await registry.enter(ALERTS_QUEUE);
    try {
      const enqueued = await claims.enqueueNow(parsed, scope.identity(by), entered);
      if (enqueued) return { run: enqueued.run };
    } finally {
      await registry.leave(ALERTS_QUEUE, entered);
    }
    throw new CarillonError("OWNER_LIMIT", "the queue of alerts has a limit.", {
      remedy: "Remove it: alerts are not limited.",
    });
  },
});

/** @throws `INVALID_OPTION` */
function checked({ url, email }: z.output<typeof input>): { url?: string; email?: string } {
  try {
    const given = { ...(url !== undefined && { url }), ...(email !== undefined && { email }) };
    parsePolicies({ alerts: [{ on: ["failed"], ...given }] });
    return given;
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    const field = error.field?.replace(/^alerts\[0\]\.?/, "");
    const { remedy } = error;
    const text = error.message.replace(/^[^:]*: /, "").replace(remedy === undefined ? "" : ` ${remedy}`, "");
    throw new CarillonError("INVALID_OPTION", text, { ...(field && { field }), ...(remedy && { remedy }) });
  }
}
