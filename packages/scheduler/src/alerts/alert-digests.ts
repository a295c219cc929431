import { createHash } from "node:crypto";
import { ALERTS_QUEUE, CarillonError, DEFAULT_OWNER, isCarillonError, parseTask } from "@carillon/core";
import {
  type AlertBody,
  type Batch,
  CARRIERS,
  carrierOf,
  deliveryPayload,
  endpointOf,
  type RoutedDestination,
  storedInstant,
} from "@carillon/core/internal";
import type { Alert, Store } from "@carillon/store";

/** The alerts of this many ms go into one mail. */
const WINDOW = 60_000;
/** A mail that is due sooner than this takes no more alerts: they go into the next one. */
const CLOSED = 5_000;
/** Number of alerts that a digest describes; it only counts the others. */
const DESCRIBED = 100;
/** Attempts to add to a digest while other nodes add to it too. */
const TRIES = 20;

/**
 * Collects alerts by owner and destination, or by destination alone if it is shared: those of a minute for an e-mail address, those of a quiet time for any
 * destination. A digest is a one-off task whose payload grows until it is due.
 */
export class AlertDigests {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Adds an alert to the next digest. One that was added before changes nothing.
   *
   * @param until the end of a quiet time, UTC ms; undefined: the end of the minute
   * @throws `CONFLICT`
   */
  async add(
    alert: Alert,
    destination: RoutedDestination,
    body: AlertBody,
    until: number | undefined,
  ): Promise<void> {
    const queue = ALERTS_QUEUE;
    const { shared } = destination;
    const owner = (shared ? undefined : alert.task?.owner) ?? DEFAULT_OWNER;
    const now = await this.#store.tasks.time(queue);
    const at = until ?? Math.ceil((now + CLOSED) / WINDOW) * WINDOW;
    const carrier = carrierOf(destination);
    const whose = createHash("sha256")
      .update(`${shared ? "*" : owner} ${destination.format} ${endpointOf(destination)}`)
      .digest("hex")
      .slice(0, 24);
    const id = `${carrier === "mail" ? "mail" : "digest"}-${whose}-${at.toString(36)}`;
    for (let tries = 0; tries < TRIES; tries++) {
      const stored = await this.#store.tasks.get({ queue, owner, id });
      const { alerts, more } = (stored?.definition.payload ?? { alerts: [], more: 0 }) as unknown as Batch;
      if (alerts.some((one) => isSame(one, alert))) return;
      const batch =
        alerts.length < DESCRIBED ? { alerts: [...alerts, body], more } : { alerts, more: more + 1 };
      const payload = deliveryPayload(destination, { namespace: this.#store.namespace, at, ...batch });
      const schedule = { at: storedInstant(at, "at") };
      const retry = { attempts: 8, delay: "5s", max: "1h" };
      const parsed = parseTask({ id, type: CARRIERS[carrier].type, queue, owner, schedule, payload, retry });
      const ifRevision = stored?.revision ?? "absent";
      try {
        await this.#store.tasks.put(queue, [parsed], { once: true, ifRevision });
        return;
      } catch (error) {
        if (!isCarillonError(error, "CONFLICT")) throw error;
      }
    }
    throw new CarillonError("CONFLICT", `the digest ${id} kept changing.`);
  }
}

function isSame(one: AlertBody, { kind, task, run, at, code }: Alert): boolean {
  return (
    one.kind === kind &&
    one.task?.queue === task?.queue &&
    one.task?.id === task?.id &&
    one.run === run &&
    one.at === at &&
    one.code === code
  );
}
