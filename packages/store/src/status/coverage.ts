import type { Gap, Work } from "@carillon/core/internal";
import { isAlive, type WorkerInfo } from "../beats.js";
import type { WorkerConnections } from "../bull/queues.js";
import type { Store } from "../store.js";

/** Maximum age of cached answers, in ms: for "has a worker", and for "has none". */
const [FOUND_FOR, MISSED_FOR] = [5_000, 1_000];

/** Tells whether a worker handles a task type, and whether there is a node. Its answers are cached, so that many puts cost few reads. */
export class Coverage {
  readonly #registered: Cached<{ readonly workers: readonly WorkerInfo[]; readonly hasNode: boolean }>;
  readonly #connections: Cached<WorkerConnections | undefined>;

  constructor(store: Store) {
    this.#registered = new Cached(async () => {
      const { registry } = store;
      const [workers, nodes, now] = await Promise.all([
        registry.workers(),
        registry.nodes(),
        store.serverTime(),
      ]);
      return {
        workers: workers.map((worker) => (isAlive(worker, now) ? worker : { ...worker, stopping: true })),
        hasNode: nodes.some((node) => isAlive(node, now)),
      };
    });
    this.#connections = new Cached(() => store.queues.connections());
  }

  /** Workers that are alive and take jobs. @param fresh read now, not from the cache @throws coded Redis errors */
  async working(fresh = false): Promise<readonly WorkerInfo[]> {
    return taking((await this.#registered.get(fresh ? 0 : FOUND_FOR)).workers);
  }

  /** Whether a node is alive. @throws coded Redis errors */
  async hasNode(): Promise<boolean> {
    return (
      (await this.#registered.get(FOUND_FOR)).hasNode || (await this.#registered.get(MISSED_FOR)).hasNode
    );
  }

  /**
   * Task types and queues without a worker. None if plain BullMQ workers may run them, or if Redis does not list its clients.
   *
   * @throws coded Redis errors
   */
  async gaps(works: readonly Work[]): Promise<Map<Work, Gap>> {
    let gaps = gapsOf(works, (await this.#registered.get(FOUND_FOR)).workers);
    if (gaps.size === 0) return gaps;
    const { workers: registered } = await this.#registered.get(MISSED_FOR);
    gaps = gapsOf(works, registered);
    if (gaps.size === 0) return gaps;
    const connections = await this.#connections.get(MISSED_FOR);
    const ours = new Set(registered.map(({ id }) => id));
    for (const [work, { queue }] of gaps) {
      if (connections === undefined || connections.workers(queue, ours) > 0) gaps.delete(work);
    }
    return gaps;
  }
}

function taking(workers: readonly WorkerInfo[]): WorkerInfo[] {
  return workers.filter(({ stopping }) => !stopping);
}

function gapsOf(works: readonly Work[], registered: readonly WorkerInfo[]): Map<Work, Gap> {
  const open = taking(registered);
  // Most of many tasks have the same queue and type.
  const known = new Map<string, Gap | undefined>();
  const gaps = new Map<Work, Gap>();
  for (const work of works) {
    const { queue, type } = work;
    const name = `${queue} ${type}`;
    if (!known.has(name)) {
      const workers = open.filter(({ queues }) => queues.includes(queue));
      const handled = workers.some(({ types }) => types.includes(type));
      known.set(name, handled ? undefined : { queue, type, workers: workers.length });
    }
    const gap = known.get(name);
    if (gap) gaps.set(work, gap);
  }
  return gaps;
}

/** A value that is read again when it is too old. Calls at the same time share one reading. */
class Cached<Value> {
  readonly #read: () => Promise<Value>;
  #value: Promise<Value> | undefined;
  #at = 0;

  constructor(read: () => Promise<Value>) {
    this.#read = read;
  }

  /** @param age at most, in ms */
  get(age: number): Promise<Value> {
    const now = performance.now();
    if (this.#value === undefined || now - this.#at > age) {
      this.#value = this.#read();
      this.#at = now;
    }
    return this.#value;
  }
}
