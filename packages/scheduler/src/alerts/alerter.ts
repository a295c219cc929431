import { ALERTS_QUEUE, isCarillonError, type Policies, type Silence } from "@carillon/core";
import {
  causeOf,
  destinationsOf,
  goneAt,
  hasCause,
  localName,
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
import { Deliveries } from "./deliveries.js";

/** Longest wait for `onAlert`, in ms: a call that hangs must not hold up the other alerts, or a stop. */
const PATIENCE = 10_000;

/**
 * Time in ms for which alerts of a task that only newer nodes can read are left to them; after that `onAlert` is called
 * here.
 */
const LEAVE_FOR = 3_600_000;

/** Facts that are the same for all deliveries of one visit. */
interface Rules {
  readonly now: number;
  readonly silences: readonly Silence[];
  readonly defaults: ReadonlyMap<string, Policies>;
  /** Silences that were prolonged in this visit. */
  readonly prolonged: Set<string>;
}

/**
 * Delivers alerts: to this node's `onAlert`, and as jobs to webhooks and e-mail addresses. Those that are silenced are
 * only recorded.
 */
export class Alerter {
  readonly #deliveries: Deliveries;

  constructor(
    private readonly store: Store,
    private readonly settings: Settings,
    private readonly patience = PATIENCE,
  ) {
    this.#deliveries = new Deliveries(store, settings);
  }

  /**
   * Whether other nodes deliver the alerts: this one has no `onAlert`, and a live one has.
   *
   * @param now UTC ms of Redis time
   */
  async leaves(now: number): Promise<boolean> {
    if (this.settings.onAlert) return false;
    const nodes = await this.store.registry.nodes();
    return nodes.some((node) => node.onAlert && isAlive(node, now));
  }

  /**
   * Delivers each waiting alert at least once: it is removed after delivery. Alerts that a newer node must deliver are left.
   * @param goOn called after each alert; if false, the rest waits for another visit
   * @returns whether alerts are left for this node
   */
  async deliver(queue: string, lease: Lease, goOn: () => boolean): Promise<boolean> {
    const { alerts } = this.store;
    const newer = new Set<string>();
    const now = await this.store.tasks.time(ALERTS_QUEUE);
    const [silences, defaults] = await Promise.all([alerts.silences(now), this.store.registry.defaults()]);
    const rules = { now, silences, defaults, prolonged: new Set<string>() };
    const { mutexTtl } = this.settings;
    let [left, passed] = [1, 0];
    while (left > passed && goOn()) {
      const delivered: Buffer[] = [];
      try {
        for (const { alert, line } of await alerts.waiting(queue, passed)) {
          if (await this.#deliverOne(await this.#withCause(alert, rules), lease, newer, rules))
            delivered.push(line);
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

  /** Sends the digests that are due. @returns whether there may be more */
  async sendDigests(goOn: () => boolean): Promise<boolean> {
    return this.#deliveries.send(goOn);
  }

  async missed(queue: string, goOn: () => boolean): Promise<boolean> {
    let more = true;
    while (more && goOn()) more = await this.store.alerts.missed(queue);
    return more;
  }

  /** Adds the cause of the failure to an alert about it, or, for a silence, to its end: that of the last failure. */
  async #withCause(alert: Alert, { silences }: Rules): Promise<Alert> {
    const { kind, task, run, error = "", ended = [] } = alert;
    if (!task) return alert;
    if (hasCause(kind)) {
      const found = run === undefined ? undefined : await this.store.runs.cause(task, run);
      const outcome = kind === "crashed" ? kind : "failed";
      return { ...alert, cause: (found ?? causeOf(outcome, error.split("\n")[0] ?? "")).id };
    }
    if (!ended.some(hasCause) || !silences.some((one) => one.cause !== undefined)) return alert;
    const cause = (await this.store.runs.cause(task))?.id;
    return cause === undefined ? alert : { ...alert, cause };
  }

  async #prolong({ id, untilGone }: Silence, { now, prolonged }: Rules): Promise<void> {
    if (!untilGone || prolonged.has(id)) return;
    await this.store.alerts.prolong(id, goneAt(now));
    prolonged.add(id);
  }

  /** @param newer tasks whose alerts are left to newer nodes @returns whether it was delivered */
  async #deliverOne(alert: Alert, lease: Lease, newer: Set<string>, rules: Rules): Promise<boolean> {
    const local = alert.task === undefined ? "" : localName(alert.task);
    if (newer.has(local)) return false;
    let task: StoredTask | undefined;
    let failure: unknown;
    try {
      if (alert.task) task = await this.store.tasks.get(alert.task);
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
      await this.#prolong(silence, rules);
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
      this.settings.logger.error({ alert, code, error: message }, "webhooks could not be called");
    }
    return true;
  }

  /** Never throws. Extends the mutex while it waits. */
  async #callOnAlert(alert: Alert, lease: Lease): Promise<void> {
    const { onAlert, logger, mutexTtl } = this.settings;
    if (!onAlert) return;
    const call = async () => onAlert(alert);
    const done = call().catch((error: unknown) => {
      logger.error({ alert, error: String(error) }, "onAlert failed");
    });
    const keep = setInterval(() => void lease.extend(mutexTtl), mutexTtl / 3);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.patience);
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
    const body = await alertBody(this.store, alert, type, this.settings.consoleUrl);
    for (const destination of to) await this.#deliveries.add(alert, destination, body, now);
  }

  /** Adds it to the list of alerts, with hosts only, because a URL may be a credential. */
  #record(alert: Alert, more: { silenced?: string; to?: readonly string[] }): void {
    this.store.alertLog.add(JSON.stringify({ ...alert, ...more }));
  }
}
