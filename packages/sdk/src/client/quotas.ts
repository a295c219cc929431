import { ALERTS_QUEUE, type QuotaScope, type TaskDefinition } from "@carillon/core";
import {
  assertInterval,
  calendarsOf,
  type Quotas,
  quotasOf,
  shortestInterval,
  tooManyTasks,
} from "@carillon/core/internal";
import type { Store } from "@carillon/store";
import { at } from "./input.js";

/**
 * Tasks are counted before they are stored, and not together with puts of others at the same moment.
 *
 * @throws `QUOTA_TASKS`, `QUOTA_INTERVAL`; the field begins with the position of the task if there are several
 */
export async function assertQuotas(
  store: Store,
  tasks: readonly TaskDefinition[],
  quotas: Quotas,
): Promise<void> {
  if (quotas.size === 0) return;
  const bound = tasks.map((task) => ({ task, quotas: quotasOf(task.owner, quotas) }));
  const left = new Map<string, number>();
  for (const [index, { task, quotas: own }] of bound.entries()) {
    try {
      if (shortestInterval(task.owner, quotas) > 0) {
        if (calendarsOf(task.schedule).length > 0) await store.calendars.refresh();
        assertInterval(task.owner, store.calendars.schedules.get(task), quotas, Date.now());
      }
      const counted = own.filter(([, { tasks }]) => tasks !== undefined);
      if (counted.length === 0 || (await store.tasks.get(task))) continue;
      for (const [scope, { tasks: most = 0 }] of counted) {
        const key = scope === "owner:*" ? `owner:${task.owner}` : scope;
        const room = left.get(key) ?? most - (await countOf(store, scope, task.owner));
        if (room <= 0) throw tooManyTasks(scope, task.owner, most);
        left.set(key, room - 1);
      }
    } catch (error) {
      throw tasks.length > 1 ? at(error, index) : error;
    }
  }
}

/** Counts tasks, except those that deliver alerts. */
async function countOf(store: Store, scope: QuotaScope, owner: string): Promise<number> {
  const queues = (await store.registry.queues()).filter((queue) => queue !== ALERTS_QUEUE);
  const counts = await Promise.all(
    queues.map((queue) => store.tasks.count(queue, scope === "all" ? undefined : owner)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}
