import { ALERTS_QUEUE, CarillonError } from "@carillon/core";
import { DESTINATIONS } from "@carillon/core/internal";
import { z } from "zod";
import { defineTask, type TaskType } from "../task-type.js";
import { HttpError } from "./errors.js";
import { type HttpRequestOptions, settle } from "./options.js";
import { perform } from "./task.js";

const alertSchema = z.object({
  url: z.string(),
  alert: z.looseObject({ kind: z.string(), at: z.number().optional() }),
});

/** A receiver that hangs holds a worker's places for this long. */
const TIMEOUT = "10s";

/**
 * Carries alerts to the webhooks that tasks name in `alerts`: give it to one of your workers. Signed, retried, and as careful
 * about addresses as {@link httpRequest}, with a timeout of 10 s by default. While a receiver does not answer, it gets one request at a
 * time, so that others get theirs.
 *
 * @example
 * const worker = new Worker({ connection, types: [alertWebhook({ signingKey: process.env.CARILLON_SIGNING_KEY! })] });
 * @throws `INVALID_OPTION` also if no signing key is given
 */
export function alertWebhook(options: Omit<HttpRequestOptions, "queue">): TaskType<typeof alertSchema> {
  if (!Object.hasOwn(options, "signingKey")) {
    throw new CarillonError("INVALID_OPTION", "missing.", {
      field: "signingKey",
      remedy: "Give a key: alerts are signed, so that the receiver can verify them.",
    });
  }
  const settings = settle({ timeout: TIMEOUT, ...options });
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

/**
 * Receivers that did not answer their last request. Each of them gets one request at a time: the others fail at once, and are
 * tried again as after any failure. So a receiver that hangs does not take all places of a worker again and again.
 */
class Receivers {
  /** By host: whether a request to it is under way. */
  readonly #silent = new Map<string, boolean>();

  async ask<Answer>(host: string, send: () => Promise<Answer>): Promise<Answer> {
    const probes = this.#silent.has(host);
    if (this.#silent.get(host)) {
      throw new HttpError("HTTP_UNREACHABLE", `${host} did not answer the last request, and is being tried.`);
    }
    if (probes) this.#silent.set(host, true);
    try {
      const answer = await send();
      this.#silent.delete(host);
      return answer;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === "HTTP_TIMEOUT" || code === "HTTP_UNREACHABLE") this.#silent.set(host, false);
      else if (code === "HTTP_ABORTED" && probes) this.#silent.set(host, false);
      else this.#silent.delete(host);
      throw error;
    }
  }
}
