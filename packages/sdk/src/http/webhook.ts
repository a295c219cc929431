import { ALERTS_QUEUE } from "@carillon/core";
import { CARRIERS, messagesOf, readDelivery } from "@carillon/core/internal";
import { z } from "zod";
import { defineTask, type TaskType } from "../task-type.js";
import { checkedSigned, type HttpRequestOptions } from "./options.js";
import { Receivers } from "./receivers.js";
import { perform } from "./task.js";

/** Read by `deliveryOf`. */
export const deliverySchema = z.looseObject({ to: z.looseObject({ format: z.string() }) });

/** @throws if it goes to a format that only newer workers know: another one may take the next attempt */
export function deliveryOf(payload: z.output<typeof deliverySchema>) {
  const { to, ...batch } = readDelivery(payload);
  if (to) return messagesOf({ to, ...batch });
  throw new Error(
    `Cannot send alerts in the format ${payload.to.format}: this worker is of another version.`,
  );
}

/** A receiver that hangs holds a worker's places for this long. */
const TIMEOUT = "10s";

/**
 * Carries alerts to the webhooks and services that tasks name in `alerts`: give it to one of your workers. Signed, retried, and as careful
 * about addresses as {@link httpRequest}, with a timeout of 10 s by default. A receiver gets at most three requests at a time, and one that does not
 * answer a single one, so that others get theirs.
 *
 * @example
 * const worker = new Worker({ connection, types: [alertWebhook({ signingKey: process.env.CARILLON_SIGNING_KEY! })] });
 * @throws `INVALID_OPTION` also if no signing key is given
 */
export function alertWebhook(options: Omit<HttpRequestOptions, "queue">): TaskType<typeof deliverySchema> {
  const settings = checkedSigned({ timeout: TIMEOUT, ...options });
  const receivers = new Receivers();
  return defineTask(CARRIERS.http.type, {
    queue: ALERTS_QUEUE,
    payload: deliverySchema,
    handler: (payload, context) => {
      const { url = "", bodies = [] } = deliveryOf(payload);
      return receivers.ask(new URL(url).host, async () => {
        let status: number | undefined;
        for (const body of bodies) {
          const spec = { method: "POST", url, headers: {}, body, expectStatus: "2xx" } as const;
          ({ status } = await perform(spec, context, settings));
        }
        return { status };
      });
    },
  });
}
