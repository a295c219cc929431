import {
  ALERTS_QUEUE,
  type Quota,
  type QuotaInput,
  type QuotaScope,
  type TaskDefinition,
} from "@carillon/core";
import {
  assertInterval,
  assertOptions,
  assertQuotaScope,
  calendarsOf,
  parseQuota,
  type Quotas,
  quotasOf,
  shortestInterval,
  tooManyTasks,
} from "@carillon/core/internal";
import type { Store } from "@carillon/store";
import { shown } from "./change.js";
import { at } from "./input.js";
import type { Scope } from "./scope.js";
import type { AuthorOptions } from "./types.js";

export interface QuotaView extends Quota {
  readonly scope: QuotaScope;
}

/** Quotas, at `client.quotas`. */
export class QuotaSettings {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** All quotas, by scope. Intervals in ms. */
  async list(): Promise<QuotaView[]> {
    const quotas = await this.#scope.store.freezes.quotas();
    return [...quotas]
      .map(([scope, quota]) => ({ scope, ...quota }))
      .sort((a, b) => (a.scope < b.scope ? -1 : 1));
  }

  /**
   * Sets the quota of the namespace (`all`), of an owner (`owner:acme`), or of each owner without an own one (`owner:*`). A task obeys its
   * owner's and the namespace's. Puts beyond `tasks` or `interval` are refused with `QUOTA_TASKS` and `QUOTA_INTERVAL`; stored tasks stay,
   * and their times that are too close are skipped. While `waiting` jobs wait in a queue, due times of its tasks are skipped, and triggers
   * refused with `QUOTA_WAITING`. What is skipped is in the ledger with the reason `quota`. Returns false if that changed nothing.
   *
   * @param quota in the place of the one before; null: none
   * @throws `INVALID_OPTION`, `INVALID_NAME`, `FORBIDDEN` for a bound client
   */
  async set(scope: QuotaScope, quota: QuotaInput | null, options: AuthorOptions = {}): Promise<boolean> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    const by = this.#scope.author(options.by);
    const checked = assertQuotaScope(scope);
    const after = quota === null ? {} : parseQuota(quota);
    const before = (await this.#scope.store.freezes.setQuota(checked, after)) ?? {};
    const changed = JSON.stringify(before) !== JSON.stringify(after);
    if (changed) {
      const facts = { before: shown({ ...before }), after: shown({ ...after }), details: { of: checked } };
      this.#scope.log("quota", {}, by, facts);
    }
    return changed;
  }
}

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
