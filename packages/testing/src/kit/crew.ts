import { bullPrefix, type Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import type { KitBullWorker } from "./bull-worker.js";

/**
 * BullMQ's default for the length of a lock and the time between two checks for stalled jobs, in ms; Carillon's worker
 * keeps it.
 */
const STALLED_INTERVAL = 30_000;

interface Orphan {
  readonly queue: string;
  readonly id: string;
  readonly crashed: number;
}

/** All BullMQ workers of a kit, and the jobs of those that crashed. */
export class Crew {
  readonly #workers = new Set<KitBullWorker>();
  readonly #orphans = new Set<Orphan>();

  /** @param start of virtual time: checks for stalled jobs come every 30 s from it */
  constructor(private readonly start: number) {}

  add(worker: KitBullWorker): void {
    this.#workers.add(worker);
  }

  async remove(worker: KitBullWorker): Promise<void> {
    this.#workers.delete(worker);
    await worker.end();
  }

  async crash(worker: KitBullWorker, now: number): Promise<void> {
    this.#workers.delete(worker);
    for (const id of await worker.crash()) this.#orphans.add({ queue: worker.queue, id, crashed: now });
  }

  get queues(): string[] {
    return [...new Set([...this.#workers].map(({ queue }) => queue))];
  }

  /** The workers of a queue that would take a job now. */
  free(queue: string): KitBullWorker[] {
    return this.#of(queue).filter(({ free }) => free > 0);
  }

  #of(queue: string): KitBullWorker[] {
    return [...this.#workers].filter((worker) => worker.queue === queue);
  }

  isOrphan(queue: string, id: string): boolean {
    for (const orphan of this.#orphans) if (orphan.id === id && orphan.queue === queue) return true;
    return false;
  }

  /** Time at which the next job of a crashed worker is passed to another one. */
  get nextRescue(): number | undefined {
    const times = [...this.#orphans].map((orphan) => this.#rescueTime(orphan) ?? Number.POSITIVE_INFINITY);
    const earliest = Math.min(...times);
    return Number.isFinite(earliest) ? earliest : undefined;
  }

  /**
   * BullMQ passes a job without a lock on at the second check that finds it, which is 30 to 60 s after its worker's last sign of
   * life; running workers of its queue do the checks.
   */
  #rescueTime({ queue, crashed }: Orphan): number | undefined {
    const since = this.#of(queue).flatMap((worker) => worker.since ?? []);
    if (since.length === 0) return undefined;
    const from = Math.max(crashed, Math.min(...since));
    const checks = Math.floor((from - this.start) / STALLED_INTERVAL);
    return this.start + (checks + 2) * STALLED_INTERVAL;
  }

  /** Passes the jobs whose time has come to other workers. */
  async rescue(now: number): Promise<boolean> {
    const due = [...this.#orphans].filter((orphan) => (this.#rescueTime(orphan) ?? now + 1) <= now);
    for (const queue of new Set(due.map((orphan) => orphan.queue))) {
      const orphans = due.filter((orphan) => orphan.queue === queue);
      const worker = this.#of(queue).find(({ since }) => since !== undefined);
      await worker?.checkStalled(orphans.map(({ id }) => id));
      for (const orphan of orphans) this.#orphans.delete(orphan);
    }
    return due.length > 0;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => this.remove(worker)));
  }
}

/** The jobs of a queue at one moment, as BullMQ's workers see them. */
export interface QueueReading {
  readonly queue: string;
  /** Jobs that a worker could take. */
  readonly ready: number;
  /** Ids, oldest first. */
  readonly active: readonly string[];
  /** Due time of the earliest delayed job. */
  readonly delayed: number | undefined;
}

/** Reads all queues in one transaction, so that a job that moves meanwhile is seen in one place. */
export async function readQueues(store: Store, queues: readonly string[]): Promise<QueueReading[]> {
  if (queues.length === 0) return [];
  const replies = await internalsOf(store).link.ask((client) => {
    const multi = client.multi();
    for (const queue of queues) {
      const bull = `${bullPrefix(store.namespace, queue)}:${queue}:`;
      multi.llen(`${bull}wait`).zcard(`${bull}prioritized`).lrange(`${bull}active`, 0, -1);
      multi.zrange(`${bull}delayed`, 0, "0", "WITHSCORES").hmget(`${bull}meta`, "paused", "concurrency");
    }
    return multi.exec();
  });
  const values = (replies ?? []).map(([error, value]) => {
    if (error) throw error;
    return value;
  });
  return queues.map((queue, i) => {
    const [wait, prioritized, active, delayed, [paused, most]] = values.slice(i * 5, i * 5 + 5) as [
      number,
      number,
      string[],
      string[],
      [string | null, string | null],
    ];
    const shut = paused !== null || (most !== null && active.length >= Number(most));
    return {
      queue,
      ready: shut ? 0 : wait + prioritized,
      active: active.reverse(),
      // BullMQ keeps the time in the upper bits of the score, a counter in the lower twelve.
      delayed: delayed[1] === undefined ? undefined : Math.floor(Number(delayed[1]) / 0x1000),
    };
  });
}
