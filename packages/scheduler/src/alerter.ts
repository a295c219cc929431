import { createHash } from "node:crypto";
import { isCarillonError, localName, type Policies, parseTask } from "@carillon/core";
import { type Alert, failsForAll, isAlive, type Lease, redisError, type Store } from "@carillon/store";
import { keep } from "./lease.js";
import type { Settings } from "./options.js";

/** The queue and type of the jobs that carry alerts to webhooks; a worker with `alertWebhook` does them. */
const WEBHOOKS = { queue: "carillon-alerts", type: "carillon.webhook" } as const;

/** `onAlert` is waited for so long, in ms: what hangs must not keep the other alerts, or a stop. */
const PATIENCE = 10_000;

/** The alert of a task that only newer nodes can read is left to them for so long, in ms; then `onAlert` is told. */
const LEAVE_FOR = 3_600_000;

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
   * Whether alerts are for other nodes to tell: this one has no `onAlert`, and one that has is alive.
   *
   * @param now UTC ms of Redis time
   */
  async leaves(now: number): Promise<boolean> {
    if (this.#settings.onAlert) return false;
    const nodes = await this.#store.registry.nodes();
    return nodes.some((node) => node.onAlert && isAlive(node, now));
  }

  /**
   * At least once each: what was told is taken off afterwards. What a newer node is to tell is left.
   * @param goOn asked after each alert: what is left then is left for another turn
   * @returns whether something is left for this node
   */
  async tell(queue: string, lease: Lease, goOn: () => boolean): Promise<boolean> {
    const { alerts } = this.#store;
    const newer = new Set<string>();
    let [left, passed] = [1, 0];
    while (left > passed && goOn()) {
      const told: Buffer[] = [];
      try {
        for (const { alert, line } of await alerts.waiting(queue, passed)) {
          if (await this.#tellOne(alert, lease, newer)) told.push(line);
          else passed += 1;
          if (!goOn()) break;
          await keep(lease, this.#settings.mutexTtl);
        }
      } finally {
        left = await alerts.told(queue, told);
      }
    }
    return left > passed;
  }

  async missed(queue: string, goOn: () => boolean): Promise<boolean> {
    let more = true;
    while (more && goOn()) more = await this.#store.alerts.missed(queue);
    return more;
  }

  /** @param newer tasks whose alerts are left to newer nodes @returns whether it was told */
  async #tellOne(alert: Alert, lease: Lease, newer: Set<string>): Promise<boolean> {
    const local = localName(alert.task);
    if (newer.has(local)) return false;
    let hooks: NonNullable<Policies["alerts"]> = [];
    let failure: unknown;
    try {
      hooks = (await this.#store.tasks.get(alert.task))?.definition.alerts ?? [];
    } catch (error) {
      // What is wrong with Redis may be over at the next try; what is wrong with the task will not.
      if (failsForAll(error)) throw error;
      failure = error;
    }
    // The error of a newer format has no cause. With one, what is stored is nonsense, which no node can read.
    const isNewer = isCarillonError(failure, "UNSUPPORTED_FORMAT") && failure.cause === undefined;
    if (isNewer && Math.abs((await this.#store.tasks.time(alert.task.queue)) - alert.at) < LEAVE_FOR) {
      newer.add(local);
      return false;
    }
    await this.#callOnAlert(alert, lease);
    try {
      if (failure !== undefined) throw failure;
      for (const { on, url } of hooks) {
        if (on.includes(alert.kind)) await this.#enqueue(alert, url);
      }
    } catch (error) {
      if (failsForAll(error)) throw error;
      const { code, message } = redisError(error);
      this.#settings.logger.error({ alert, code, error: message }, "webhooks are not told");
    }
    return true;
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
