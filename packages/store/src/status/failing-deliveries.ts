import { ALERTS_QUEUE } from "@carillon/core";
import {
  type Delivery,
  FAILURES,
  localName,
  type StatusReasonFacts,
  shownTarget,
} from "@carillon/core/internal";
import type { Store } from "../store.js";
import type { StoredTask } from "../task/codec.js";

/** Deliveries that are read. */
const SAMPLE = 50;
/** Time in ms for which a delivery that failed for good is a reason. */
const RECENT = 600_000;
/** Receivers that are named. */
const NAMED = 3;

/** Deliveries of alerts that failed, or wait for another try: their receivers do not take them. */
export async function failingDeliveries(
  { store, owner }: { readonly store: Store; readonly owner?: string | undefined },
  now: number,
): Promise<StatusReasonFacts[]> {
  const queue = ALERTS_QUEUE;
  const [delayed, ended] = await Promise.all([
    store.queues.delayed(queue, SAMPLE).then((ids) => store.runs.many(queue, ids)),
    store.tasks.listLast({ queue, owner, outcomes: FAILURES }, SAMPLE),
  ]);
  const last = await store.runs.last(ended.tasks.map(({ definition }) => definition));
  const runs = [
    ...delayed.filter(({ state, attempts }) => state !== "final" && attempts > 0),
    ...last.flatMap(({ run }) => (run && now - (run.finished ?? 0) < RECENT ? [run] : [])),
  ].filter(({ task }) => owner === undefined || task.owner === owner);
  if (runs.length === 0) return [];
  const known = new Map(ended.tasks.map((task) => [localName(task.definition), task]));
  const tasks = await Promise.all(
    runs.map(({ task }) => known.get(localName(task)) ?? store.tasks.get(task).catch(() => undefined)),
  );
  const error = runs.find((run) => run.error !== undefined)?.error?.split("\n")[0];
  return [
    {
      code: "ALERTS_FAIL",
      queue,
      deliveries: runs.length,
      to: [...new Set(tasks.flatMap(receiverOf))].slice(0, NAMED),
      ...(error !== undefined && { error }),
      since: Math.min(...runs.map(({ enqueued }) => enqueued)),
    },
  ];
}

/** The host or address that a delivery goes to. */
function receiverOf(task: StoredTask | undefined): string[] {
  if (!task) return [];
  return [shownTarget((task.definition.payload as unknown as Delivery).to)];
}
