import { createHash } from "node:crypto";
import {
  ALERTS_QUEUE,
  DEFAULT_OWNER,
  isCarillonError,
  type Policies,
  parseTask,
  type Silence,
} from "@carillon/core";
import {
  type AlertBody,
  CARRIERS,
  carrierOf,
  deliveryPayload,
  destinationsOf,
  endpointOf,
  localName,
  quietUntil,
  type RoutedDestination,
  shownTarget,
  silenceOf,
} from "@carillon/core/internal";
import {
  type Alert,
  failsForAll,
  isAlive,
  type Lease,
  redisError,
  type Store,
  type StoredTask,
} from "@carillon/store";
import type { Settings } from "../options.js";
import { alertBody } from "./alert-body.js";
import { AlertDigests } from "./alert-digests.js";

/** Longest wait for `onAlert`, in ms: a call that hangs must not hold up the other alerts, or a stop. */
const PATIENCE = 10_000;

/**
 * Time in ms for which alerts of a task that only newer nodes can read are left to them; after that `onAlert` is called
 * here.
 */
const LEAVE_FOR = 3_600_000;

/** Attempts to store a call of a webhook. */
const TRIES = 3;

/** Facts that are the same for all deliveries of one visit. */
interface Rules {
  readonly now: number;
  readonly silences: readonly Silence[];
  readonly defaults: ReadonlyMap<string, Policies>;
}

/**
 * Delivers alerts: to this node's `onAlert`, and as jobs to webhooks and e-mail addresses. Those that are silenced are
 * only recorded.
 */
export class Alerter {
  readonly #store: Store;
  readonly #settings: Settings;
  readonly #patience: number;
  readonly #digests: AlertDigests;

  constructor(store: Store, settings: Settings, patience = PATIENCE) {
    this.#store = store;
    this.#settings = settings;
    this.#patience = patience;
    this.#digests = new AlertDigests(store);
  }

  /**
   * Whether other nodes deliver the alerts: this one has no `onAlert`, and a live one has.
   *
   * @param now UTC ms of Redis time
   */
  async leaves(now: number): Promise<boolean> {
    if (this.#settings.onAlert) return false;
    const nodes = await this.#store.registry.nodes();
    return nodes.some((node) => node.onAlert && isAlive(node, now));
  }

  /**
   * Delivers each waiting alert at least once: it is removed after delivery. Alerts that a newer node must deliver are left.
   * @param goOn called after each alert; if false, the rest waits for another visit
   * @returns whether alerts are left for this node
   */
  async deliver(queue: string, lease: Lease, goOn: () => boolean): Promise<boolean> {
    const { alerts } = this.#store;
    const newer = new Set<string>();
    const now = await this.#store.serverTime();
    const [silences, defaults] = await Promise.all([alerts.silences(now), this.#store.registry.defaults()]);
    const rules = { now, silences, defaults };
    const { mutexTtl } = this.#settings;
    let [left, passed] = [1, 0];
    while (left > passed && goOn()) {
      const delivered: Buffer[] = [];
      try {
        for (const { alert, line } of await alerts.waiting(queue, passed)) {
          if (await this.#deliverOne(alert, lease, newer, rules)) delivered.push(line);
          else passed += 1;
          if (!goOn()) break;
          if (lease.remaining < mutexTtl / 2) await lease.extend(mutexTtl);
        }
      } finally {
        left = await alerts.removeDelivered(queue, delivered);
      }
    }
    return left > passed;
  }

  async missed(queue: string, goOn: () => boolean): Promise<boolean> {
    let more = true;
    while (more && goOn()) more = await this.#store.alerts.missed(queue);
    return more;
  }

  /** @param newer tasks whose alerts are left to newer nodes @returns whether it was delivered */
  async #deliverOne(alert: Alert, lease: Lease, newer: Set<string>, rules: Rules): Promise<boolean> {
    const local = alert.task === undefined ? "" : localName(alert.task);
    if (newer.has(local)) return false;
    let task: StoredTask | undefined;
    let failure: unknown;
    try {
      if (alert.task) task = await this.#store.tasks.get(alert.task);
    } catch (error) {
      // A fault of Redis may be over at the next try; a fault in the task is not.
      if (failsForAll(error)) throw error;
      failure = error;
    }
    // The error about a newer format has no cause. With a cause the stored data is corrupt, and no node can read it.
    const isNewer = isCarillonError(failure, "UNSUPPORTED_FORMAT") && failure.cause === undefined;
    if (isNewer && Math.abs(rules.now - alert.at) < LEAVE_FOR) {
      newer.add(local);
      return false;
    }
    const silence = silenceOf(rules.silences, alert, rules.now);
    if (silence) {
      this.#record(alert, { silenced: silence.id });
      return true;
    }
    await this.#callOnAlert(alert, lease);
    try {
      if (failure !== undefined) throw failure;
      // Alerts of a deleted task go to `onAlert` only.
      const gone = alert.task !== undefined && !task;
      const to = gone ? [] : destinationsOf(alert, task?.definition, rules.defaults);
      await this.#send(alert, task?.definition.type, to, rules.now);
      this.#record(alert, { to: to.map(shownTarget) });
    } catch (error) {
      if (failsForAll(error)) throw error;
      const { code, message } = redisError(error);
      this.#settings.logger.error({ alert, code, error: message }, "webhooks could not be called");
    }
    return true;
  }

  /** Never throws. Extends the mutex while it waits. */
  async #callOnAlert(alert: Alert, lease: Lease): Promise<void> {
    const { onAlert, logger, mutexTtl } = this.#settings;
    if (!onAlert) return;
    const call = async () => onAlert(alert);
    const done = call().catch((error: unknown) => {
      logger.error({ alert, error: String(error) }, "onAlert failed");
    });
    const keep = setInterval(() => void lease.extend(mutexTtl), mutexTtl / 3);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#patience);
    }).then(() => logger.error({ alert }, "onAlert timed out: continuing without it"));
    await Promise.race([done, late]);
    clearTimeout(timer);
    clearInterval(keep);
  }

  async #send(
    alert: Alert,
    type: string | undefined,
    to: readonly RoutedDestination[],
    now: number,
  ): Promise<void> {
    if (to.length === 0) return;
    const body = await alertBody(this.#store, alert, type, this.#settings.consoleUrl);
    for (const destination of to) {
      const until = quietUntil(destination, now);
      if (carrierOf(destination) === "http" && until === undefined)
        await this.#enqueue(alert, destination, body);
      else await this.#digests.add(alert, destination, body, until);
    }
  }

  /** Adds it to the list of alerts, with hosts only, because a URL may be a credential. */
  #record(alert: Alert, more: { silenced?: string; to?: readonly string[] }): void {
    this.#store.alertLog.add(JSON.stringify({ ...alert, ...more }));
  }

  /** The job's name is derived from the alert, so that delivering it twice makes one job. */
  async #enqueue(alert: Alert, to: RoutedDestination, body: AlertBody): Promise<void> {
    const { task, run, kind, code, queue: about, type, at: when } = alert;
    const what = [JSON.stringify(task), run, kind, code, about, type, when, to.format, endpointOf(to)].join(
      " ",
    );
    const id = `alert-${createHash("sha256").update(what).digest("hex").slice(0, 24)}`;
    const queue = ALERTS_QUEUE;
    const retry = { attempts: 8, delay: "5s", max: "1h" };
    const { namespace } = this.#store;
    const payload = deliveryPayload(to, { namespace, alerts: [body], more: 0 });
    const owner = alert.task?.owner ?? DEFAULT_OWNER;
    const { type: carrier } = CARRIERS.http;
    const by = { key: id, token: "1", node: this.#settings.nodeId };
    const entered = await this.#store.registry.enter(queue);
    try {
      // Early if the clock of Redis goes back after its time was read.
      for (let tries = 0; tries < TRIES; tries++) {
        const schedule = { at: await this.#store.tasks.time(queue) };
        const parsed = parseTask({ id, type: carrier, queue, owner, schedule, payload, retry });
        if (await this.#store.claims.enqueueNow(parsed, by, entered)) return;
      }
      throw new Error("the clock of Redis kept going back.");
    } catch (error) {
      // Enqueued before, by a node that died before it removed the alert.
      if (!isCarillonError(error, "CONFLICT")) throw error;
    } finally {
      await this.#store.registry.leave(queue, entered);
    }
  }
}
