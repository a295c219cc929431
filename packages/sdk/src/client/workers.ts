import type { Scope } from "./scope.js";
import { type WorkerView, workerView } from "./view.js";

/**
 * The worker processes of a namespace, at `client.workers`. Plain BullMQ workers do not register: `client.queues`
 * counts them.
 */
export class Workers {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** The workers, and which runs each has under way. A worker that died stays listed for an hour. */
  async list(): Promise<WorkerView[]> {
    const { store, owner } = this.#scope;
    const [workers, now] = await Promise.all([store.registry.workers(), store.serverTime()]);
    return workers.map((worker) => workerView(worker, now, owner));
  }
}
