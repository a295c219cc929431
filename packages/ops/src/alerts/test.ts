import { randomBytes } from "node:crypto";
import { ALERTS_QUEUE, type AlertTarget, DEFAULT_OWNER, parseTask } from "@carillon/core";
import {
  ALERT_FORMATS,
  CARRIERS,
  carrierOf,
  conflict,
  deliveryPayload,
  fromZod,
  parseTarget,
  targetInput,
} from "@carillon/core/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { given, oneOf } from "../shapes.js";

const input = z.strictObject({
  target: given.describe("A URL, an e-mail address or a routing key."),
  format: oneOf(ALERT_FORMATS)
    .optional()
    .describe("Default: by the destination, if that is not a routing key."),
  url: given.optional().describe("The endpoint for a routing key. Default: the service's."),
});

/** Its run tells whether it arrived: `client.runs.get`. */
export const testAlert = operation({
  http: "POST /alerts/test",
  role: "operator",
  reach: "owner",
  logs: false,
  once: "script",
  example: { target: "https://example.com/alerts" },
  summary: "Sends a test alert to a destination, once, by a worker that delivers alerts.",
  input,
  output: z.object({ run: z.string() }),
  status: [202],
  async run({ store, scope, owner = DEFAULT_OWNER, by }, given) {
    const to = checked(given);
    const at = await store.serverTime();
    const { namespace } = store;
    const alerts = [{ kind: "test", namespace, at, message: "A test of this destination." }];
    const payload = deliveryPayload(to, { namespace, alerts });
    const { type } = CARRIERS[carrierOf(to)];
    const id = `test-${randomBytes(8).toString("hex")}`;
    const parsed = parseTask({ id, type, queue: ALERTS_QUEUE, owner, schedule: { at }, payload });
    const enqueued = await store.registry.during(ALERTS_QUEUE, (entered) =>
      store.claims.enqueueNow(parsed, scope.identity(by), entered),
    );
    if (enqueued) return { run: enqueued.run };
    // Neither freezes nor limits hold in the queue of alerts.
    throw conflict("the clock of Redis went back meanwhile.", "Try again.");
  },
});

/** @throws `INVALID_OPTION`, naming the field of this operation's input, not that of the destination */
function checked({ target, format, url }: z.output<typeof input>): AlertTarget {
  const to = targetInput(target, format);
  try {
    return parseTarget({ ...to, ...(url !== undefined && { url }) });
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    const isTarget = ([name = ""]: readonly PropertyKey[]) =>
      name in to && (name !== "url" || url === undefined);
    const issues = error.issues.map((issue) =>
      isTarget(issue.path) ? { ...issue, path: ["target"] } : issue,
    );
    throw fromZod(new z.ZodError(issues), "INVALID_OPTION");
  }
}
