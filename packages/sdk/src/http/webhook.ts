import { ALERTS_QUEUE } from "@carillon/core";
import { DESTINATIONS } from "@carillon/core/internal";
import { z } from "zod";
import { defineTask, type TaskType } from "../task-type.js";
import { type HttpRequestOptions, settleSigned } from "./options.js";
import { Receivers } from "./receivers.js";
import { perform } from "./task.js";

const alertSchema = z.object({
  url: z.string(),
  alert: z.looseObject({ kind: z.string(), at: z.number().optional() }),
});

/** A receiver that hangs holds a worker's places for this long. */
const TIMEOUT = "10s";

/**
 * Carries alerts to the webhooks that tasks name in `alerts`: give it to one of your workers. Signed, retried, and as careful
 * about addresses as {@link httpRequest}, with a timeout of 10 s by default. A receiver gets at most three requests at a time, and one that does not
 * answer a single one, so that others get theirs.
 *
 * @example
 * const worker = new Worker({ connection, types: [alertWebhook({ signingKey: process.env.CARILLON_SIGNING_KEY! })] });
 * @throws `INVALID_OPTION` also if no signing key is given
 */
export function alertWebhook(options: Omit<HttpRequestOptions, "queue">): TaskType<typeof alertSchema> {
  const settings = settleSigned({ timeout: TIMEOUT, ...options });
  const receivers = new Receivers();
  return defineTask(DESTINATIONS.url.type, {
    queue: ALERTS_QUEUE,
    payload: alertSchema,
    handler: ({ url, alert }, context) =>
      receivers.ask(new URL(url).host, () =>
        perform(
          { method: "POST", url, headers: {}, body: alert as never, expectStatus: "2xx" },
          context,
          settings,
        ),
      ),
  });
}
