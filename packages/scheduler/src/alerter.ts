import { createHash } from "node:crypto";
import { isCarillonError, parseTask } from "@carillon/core";
import { type Alert, failsForAll, type Lease, redisError, type Store } from "@carillon/store";
import { keep } from "./lease.js";
import type { Settings } from "./options.js";

/** The queue and type of the jobs that carry alerts to webhooks; a worker with `alertWebhook` does them. */
const WEBHOOKS = { queue: "carillon-alerts", type: "carillon.webhook" } as const;

/** `onAlert` is waited for so long, in ms: what hangs must not keep the other alerts, or a stop. */
const PATIENCE = 10_000;

/** Hands alerts on: to this node's function, and as jobs to the webhooks that the task names. */
export class Alerter {
  readonly #store: Store;
  readonly #settings: Settings;
  readonly #patience: number;

  constructor(store: Store, settings: Settings, patience = PATIENCE) {
    this.#store = store;
    this.#settings = settings;
    this.#patience = patience;
  }

  /**
   * At least once each: what was told is taken off afterwards.
   * @param goOn asked after each alert: what is left then is left for another turn
   * @returns whether something is left
   */
  async tell(queue: string, lease: Lease, goOn: () => boolean): Promise<boolean> {
    const { alerts } = this.#store;
    let left = 1;
    while (left > 0 && goOn()) {
      const told: string[] = [];
      try {
        for (const { alert, line } of await alerts.waiting(queue)) {
          await this.#tellOne(alert, lease);
          told.push(line);
          if (!goOn()) break;
          await keep(lease, this.#settings.mutexTtl);
        }
      } finally {
        left = await alerts.told(queue, told);
      }
    }
    return left > 0;
  }

  async missed(queue: string, goOn: () => boolean): Promise<boolean> {
    let more = true;
    while (more && goOn()) more = await this.#store.alerts.missed(queue);
    return more;
  }

  async #tellOne(alert: Alert, lease: Lease): Promise<void> {
    await this.#callOnAlert(alert, lease);
    try {
      const task = await this.#store.tasks.get(alert.task);
      for (const { on, url } of task?.definition.alerts ?? []) {
        if (on.includes(alert.kind)) await this.#enqueue(alert, url);
      }
    } catch (error) {
      // What is wrong with Redis may be over at the next try; what is wrong with the task will not.
      if (failsForAll(error)) throw error;
      const { code, message } = redisError(error);
      this.#settings.logger.error({ alert, code }, `webhooks are not told: ${message}`);
    }
  }

  /** Never throws. Meanwhile the mutex is held on to. */
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
    }).then(() => logger.error({ alert }, "onAlert takes too long: no longer waited for"));
    await Promise.race([done, late]);
    clearTimeout(timer);
    clearInterval(keep);
  }

  /** Its name is derived from what it tells: told twice, it is one job. */
  async #enqueue(alert: Alert, url: string): Promise<void> {
    const what = `${JSON.stringify(alert.task)} ${alert.run} ${alert.kind} ${alert.at} ${url}`;
    const id = `alert-${createHash("sha256").update(what).digest("hex").slice(0, 24)}`;
    const { queue, type } = WEBHOOKS;
    const at = await this.#store.tasks.time(queue);
    const retry = { attempts: 8, delay: "5s", max: "1h" };
    const payload = { url, alert };
    const parsed = parseTask({ id, type, queue, owner: alert.task.owner, schedule: { at }, payload, retry });
    const by = { key: id, token: "1", node: this.#settings.nodeId };
    const mark = await this.#store.registry.enter(queue);
    try {
      await this.#store.claims.enqueueNow(parsed, by);
    } catch (error) {
      // Told before, by a node that died before it could say so.
      if (!isCarillonError(error, "CONFLICT")) throw error;
    } finally {
      await this.#store.registry.leave(queue, mark);
    }
  }
}
