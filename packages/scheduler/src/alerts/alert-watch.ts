import { ALERTS_QUEUE, parseTask } from "@carillon/core";
import {
  CARRIERS,
  defined,
  deliveryPayload,
  isLate,
  parseTarget,
  reasonText,
  type StatusReasonFacts,
} from "@carillon/core/internal";
import { Coverage, type Incident, isAlive, isSilent, readStatus, type Store } from "@carillon/store";
import type { Settings } from "../options.js";

/** Time between two checks, and how long an alert may wait for a worker, in ms. */
const MINUTE = 60_000;

/**
 * On one of the nodes: warns while alerts wait for a worker that delivers them; otherwise nobody would notice. And raises
 * the alerts about the whole namespace: for each reason of its status that has lasted for a minute.
 */
export class AlertWatch {
  readonly #coverage: Coverage;
  #checkedAt = Number.NEGATIVE_INFINITY;
  /** Time at which this node first saw each current reason, UTC ms. */
  #seen = new Map<string, number>();

  constructor(
    private readonly store: Store,
    private readonly settings: Settings,
  ) {
    this.#coverage = new Coverage(store);
  }

  /** Checks at most once a minute. @param now UTC ms of Redis time */
  async check(now: number): Promise<void> {
    if (Math.abs(now - this.#checkedAt) < MINUTE) return;
    this.#checkedAt = now;
    await this.#putWatchdog();
    if (!(await this.#watches(now))) return;
    await this.#warn();
    await this.#raise(now);
  }

  /** A task whose every run is a heartbeat: it takes a node, Redis and a worker. Put again, it changes nothing. */
  async #putWatchdog(): Promise<void> {
    const { watchdog } = this.settings;
    if (!watchdog) return;
    const { url, every } = watchdog;
    const { namespace } = this.store;
    const alerts = [{ kind: "heartbeat", namespace }];
    const payload = deliveryPayload(parseTarget({ url }), { namespace, alerts });
    const task = parseTask({
      id: "watchdog",
      queue: ALERTS_QUEUE,
      type: CARRIERS.http.type,
      payload,
      schedule: { every },
      catchUp: "skip",
      timeLimit: "30s",
      retention: { successes: 1, failures: 10 },
      description: "Heartbeat for a watchdog outside",
    });
    await this.store.tasks.put(ALERTS_QUEUE, [task]);
  }

  async #warn(): Promise<void> {
    // Alerts of a paused queue count too.
    const { waiting = 0, oldestWaitingMs: oldest = 0 } = (await this.store.queues.state(ALERTS_QUEUE)) ?? {};
    if (oldest < MINUTE) return;
    const details = { queue: ALERTS_QUEUE, waiting, oldest };
    this.settings.logger.warn(details, "alerts wait for a worker with alertWebhook");
  }

  /** One node is enough: the first of those that work. Two do no harm. */
  async #watches(now: number): Promise<boolean> {
    const nodes = await this.store.registry.nodes();
    const { nodeId, logger } = this.settings;
    const same = nodes.filter((node) => node.id === nodeId && isAlive(node, now));
    if (same.length > 1) {
      const processes = same.map(({ host, pid }) => `${pid} on ${host}`);
      logger.warn({ node: nodeId, processes }, "several nodes have the same nodeId: give each its own");
    }
    const first = nodes.find((node) => node.ready && isAlive(node, now) && !isSilent(node, now));
    return first?.id === nodeId;
  }

  async #raise(now: number): Promise<void> {
    const { reasons } = await readStatus({ store: this.store, coverage: this.#coverage });
    const seen = new Map<string, number>();
    const incidents = reasons.flatMap((reason): Incident[] => {
      const kind = kindOf(reason);
      if (kind === undefined) return [];
      const { code, queue, type } = reason;
      const key = `${code} ${queue} ${type}`;
      const since = this.#seen.get(key) ?? now;
      seen.set(key, since);
      const alert = {
        kind,
        at: reason.since ?? since,
        code,
        message: reasonText(reason),
        ...defined({ queue, type }),
      };
      return [{ lasts: now - since >= MINUTE, alert }];
    });
    this.#seen = seen;
    const { registry, alerts } = this.store;
    if (!incidents.some(({ lasts }) => lasts)) return alerts.noteIncidents(incidents);
    // Nodes deliver the alerts of queues that are registered.
    await registry.during(ALERTS_QUEUE, () => alerts.noteIncidents(incidents));
  }
}

/** The kind of alert that a reason of the status raises. None if work is late but continues. */
function kindOf(reason: StatusReasonFacts): "no-worker" | "stopped" | undefined {
  if (isLate(reason)) return undefined;
  return reason.code === "NO_WORKER" ? "no-worker" : "stopped";
}
