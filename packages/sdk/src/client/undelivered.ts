import { ALERTS_QUEUE } from "@carillon/core";
import {
  type Delivery as Delivered,
  destined,
  kindsOf,
  readDelivery,
  shownTarget,
} from "@carillon/core/internal";
import type { Alert } from "@carillon/store";
import type { Scope } from "./scope.js";
import { listTasks } from "./task-reader.js";
import type { Task } from "./view.js";

/** A request or a mail that is not sent yet. */
interface Delivery {
  /** Id of the task that sends it, in the queue of alerts. Of what is collected: of its destination. */
  readonly id: string;
  readonly owner: string;
  /** Host of the webhook, or the e-mail address. */
  readonly to: string;
  /** `collecting`: until `at`; `waiting`: for a worker, or for its next attempt; `failed`: after its last one. */
  readonly state: "collecting" | "waiting" | "failed";
  /** Due time, UTC ms. */
  readonly at: number;
  readonly kinds: readonly string[];
  readonly error?: string;
}

/** Alerts and deliveries that have reached nobody yet. */
export interface Undelivered {
  /** Alerts that wait for a node. */
  readonly alerts: readonly Alert[];
  readonly deliveries: readonly Delivery[];
}

/** Deliveries, and alerts of a queue, that are listed. */
const MOST = 100;

/**
 * Alerts that wait for a node, deliveries that wait for a worker or failed, and digests that are collected: the first
 * hundred of each.
 */
export async function undelivered(scope: Scope): Promise<Undelivered> {
  const { owner, store } = scope;
  const queues = [...new Set([...(await scope.queues()), ALERTS_QUEUE])];
  const waiting = await Promise.all(queues.map((queue) => store.alerts.waiting(queue)));
  const alerts = waiting
    .flat()
    .map(({ alert }) => alert)
    .filter(({ task }) => owner === undefined || task?.owner === owner)
    .slice(0, MOST);
  const { tasks } = await listTasks(scope, { queue: ALERTS_QUEUE, limit: 1_000 });
  const collecting = (await store.alerts.collected()).flatMap(({ destination: id, state, due: at }) => {
    const found = destined(state);
    const kinds = found ? kindsOf(found) : [];
    if (!found || kinds.length === 0 || (owner !== undefined && owner !== found.to.owner)) return [];
    const to = shownTarget(readDelivery(found.to.payload).to);
    return [{ id, owner: found.to.owner, to, state: "collecting" as const, at, kinds }];
  });
  return { alerts, deliveries: [...tasks.flatMap(deliveryOf), ...collecting].slice(0, MOST) };
}

/** Empty if it was sent. */
function deliveryOf(task: Task): Delivery[] {
  // The heartbeat of a watchdog recurs.
  return "at" in task.schedule ? oneOff(task) : [];
}

function oneOff({
  id,
  owner,
  state,
  created,
  payload,
  openRuns,
  nextExecution,
  lastStatus,
}: Task): Delivery[] {
  const { to, alerts } = payload as unknown as Delivered;
  const failed = lastStatus !== undefined && lastStatus.outcome !== "succeeded";
  const waits = openRuns || state === "scheduled";
  if (!waits && !failed) return [];
  return [
    {
      id,
      owner,
      to: shownTarget(to),
      state: waits ? "waiting" : "failed",
      at: nextExecution ?? created,
      kinds: [...new Set(alerts.map(({ kind }) => kind))],
      ...(lastStatus?.error !== undefined && { error: lastStatus.error }),
    },
  ];
}
