import { createHash } from "node:crypto";
import { ALERTS_QUEUE, DEFAULT_OWNER, isCarillonError, parseTask } from "@carillon/core";
import {
  type AlertBody,
  CARRIERS,
  carrierOf,
  collect,
  collectedUntil,
  type Destined,
  deliveryPayload,
  destined,
  endpointOf,
  isForgotten,
  type Job,
  nothingCollected,
  perMinuteOf,
  quietUntil,
  type RoutedDestination,
  takeDigest,
} from "@carillon/core/internal";
import { type Alert, failsForAll, redisError, type Store } from "@carillon/store";
import type { Settings } from "../options.js";

/** Attempts to store a delivery. */
const TRIES = 3;
/** Destinations whose digests are sent in one step. */
const BATCH = 100;

/**
 * Makes jobs of alerts: one each, or a digest of those that a destination collects. A destination is a receiver with its quiet times; one that
 * tasks or an owner name is another one for each owner.
 */
export class Deliveries {
  constructor(
    private readonly store: Store,
    private readonly settings: Settings,
  ) {}

  /** Enqueues an alert, or adds it to what its destination collects. An alert that comes again changes nothing. */
  async add(alert: Alert, to: RoutedDestination, body: AlertBody, now: number): Promise<void> {
    const { task, run, kind, code, queue, type: about, at } = alert;
    const carrier = carrierOf(to);
    const receiver = `${to.format} ${endpointOf(to)}`;
    const own = task?.owner ?? DEFAULT_OWNER;
    const owner = to.shared ? DEFAULT_OWNER : own;
    const destination = hash(`${to.shared ? "*" : owner} ${receiver} ${JSON.stringify(to.quiet ?? [])}`);
    const id = hash([JSON.stringify(task), run, kind, code, queue, about, at, receiver].join(" "));
    const { type } = CARRIERS[carrier];
    const { namespace } = this.store;
    const rules = {
      perMinute: perMinuteOf(to),
      quiet: quietUntil(to, now),
      ends: to.on.includes("recovered"),
    };
    const alone = await this.#change(destination, (stored) => {
      const digest = { owner, type, payload: deliveryPayload(to, { namespace, alerts: [] }) };
      const state = { ...(stored ?? nothingCollected()), to: digest };
      return { state, answer: collect(state, { id, body }, now, rules) };
    });
    if (!alone) return;
    const payload = deliveryPayload(to, { namespace, alerts: [body] });
    await this.#enqueue({ id: `alert-${id}`, owner: own, type, payload });
  }

  /** Sends the digests that are due. @returns whether there may be more */
  async send(goOn: () => boolean): Promise<boolean> {
    const now = await this.store.tasks.time(ALERTS_QUEUE);
    const due = await this.store.alerts.collectedBy(now, BATCH);
    for (const destination of due) {
      if (!goOn()) return true;
      try {
        await this.#sendOne(destination, now);
      } catch (error) {
        // One that cannot be sent must not hold up the others.
        if (failsForAll(error)) throw error;
        const { code, message } = redisError(error);
        this.settings.logger.error({ destination, code, error: message }, "a digest could not be sent");
      }
    }
    return due.length === BATCH;
  }

  /** In three steps, each of which can be repeated: what a node that dies has taken out is sent by the next one. */
  async #sendOne(destination: string, now: number): Promise<void> {
    const { namespace } = this.store;
    const outgoing = await this.#change(destination, (stored) => {
      if (!stored) return { state: undefined, answer: undefined };
      const { to } = stored;
      if (!stored.outgoing) {
        const alerts = takeDigest(stored, now);
        const id = `digest-${destination}-${now.toString(36)}`;
        if (alerts.length > 0)
          stored.outgoing = { ...to, id, payload: { ...to.payload, namespace, at: now, alerts } };
      }
      const state = stored.outgoing || !isForgotten(stored, now) ? stored : undefined;
      return { state, answer: stored.outgoing };
    });
    if (!outgoing) return;
    await this.#enqueue(outgoing);
    await this.#change(destination, (stored) => {
      if (stored?.outgoing?.id === outgoing.id) delete stored.outgoing;
      return { state: stored, answer: undefined };
    });
  }

  async #change<T>(
    destination: string,
    change: (stored: Destined | undefined) => { state: Destined | undefined; answer: T },
  ): Promise<T> {
    const { registry, alerts } = this.store;
    // Nodes send the digests only of a queue that is registered.
    return registry.during(ALERTS_QUEUE, () =>
      alerts.collect(destination, (stored) => {
        const { state, answer } = change(destined(stored));
        return { state, due: state ? (state.outgoing ? 0 : collectedUntil(state)) : 0, answer };
      }),
    );
  }

  /** The job's name is derived from its content, so that enqueuing it twice makes one job. */
  async #enqueue({ id, owner, type, payload }: Job): Promise<void> {
    const queue = ALERTS_QUEUE;
    const retry = { attempts: 8, delay: "5s", max: "1h" };
    const by = { key: id, token: "1", node: this.settings.nodeId };
    const { claims, registry, tasks } = this.store;
    await registry
      .during(queue, async (entered) => {
        // Early if the clock of Redis goes back after its time was read.
        for (let tries = 0; tries < TRIES; tries++) {
          const schedule = { at: await tasks.time(queue) };
          const parsed = parseTask({ id, type, queue, owner, schedule, payload, retry });
          if (await claims.enqueueNow(parsed, by, entered)) return;
        }
        throw new Error("the clock of Redis kept going back.");
      })
      .catch((error: unknown) => {
        // Enqueued before, by a node that died before it noted that.
        if (!isCarillonError(error, "CONFLICT")) throw error;
      });
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 24);
}
