import { type Freeze, frozenAt } from "@carillon/core/internal";
import type { RedisClient, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { fail } from "./promises.js";

/** Author of every freeze; the ledger must name it. */
export const FREEZER = "ann";
/** Scripts that enqueue. */
const ENQUEUES = /^before (commit|enqueue-new)$/;

/**
 * Checks that nothing is enqueued while an acknowledged freeze holds. All freezes of a history cover all of its tasks.
 */
export class FreezeWatch {
  /** Freezes whose put was acknowledged, and that no client has begun to lift. */
  readonly #held = new Map<string, Freeze>();
  /** A client may lift a freeze before its put is acknowledged. */
  readonly #lifted = new Set<string>();
  /** For each put that is under way, the latest Redis time since it began. */
  readonly #putting = new Set<{ latest: number }>();
  readonly #client: RedisClient;
  readonly #store: Store;
  readonly #queue: string;

  constructor(store: Store, client: RedisClient, queue: string) {
    this.#store = store;
    this.#client = client;
    this.#queue = queue;
  }

  /** Call this before a freeze is put, and the result when it was acknowledged. */
  puts(): (freeze: Freeze) => void {
    const seen = { latest: 0 };
    this.#putting.add(seen);
    return (freeze) => {
      this.#putting.delete(seen);
      // Deleted before its put was acknowledged, because it had ended before the clock went back.
      const ended = freeze.until !== undefined && freeze.until <= seen.latest;
      if (!ended && !this.#lifted.has(freeze.id)) this.#held.set(freeze.id, freeze);
    };
  }

  /** Call this when a client begins to lift freezes: from then on they may hold or not. */
  lifts(...ids: readonly string[]): void {
    for (const id of ids) {
      this.#lifted.add(id);
      this.#held.delete(id);
    }
  }

  /** Lifts all freezes. Returns whether there were any. */
  async liftAll(): Promise<boolean> {
    const ids = (await this.#store.freezes.list()).map(({ id }) => id);
    this.lifts(...ids);
    return ids.length > 0 && (await this.#store.freezes.lift(...ids));
  }

  /**
   * Forgets freezes that have ended: they are deleted, so they do not hold again if the clock goes back.
   * @param now Redis time
   */
  passed(now: number): void {
    for (const seen of this.#putting) seen.latest = Math.max(seen.latest, now);
    for (const { id, until } of this.#held.values()) if (until !== undefined && until <= now) this.lifts(id);
  }

  /** Call this before an actor continues from this point, and the result after it. Undefined: the step may enqueue. */
  async step(point: string, now: number): Promise<(() => Promise<void>) | undefined> {
    if (!ENQUEUES.test(point)) return undefined;
    const frozen = frozenAt([...this.#held.values()], now);
    if (!frozen) return undefined;
    const before = await this.runs();
    return async () => {
      const [run] = [...(await this.runs())].filter((one) => !before.has(one));
      if (run !== undefined) fail(`${run} was enqueued during the freeze ${frozen.id}`);
    };
  }

  /** Checks that each skip by a freeze is in the ledger with its author. */
  async ledgers(): Promise<void> {
    const { tasks } = await this.#store.tasks.list({ queue: this.#queue }, 100);
    for (const { definition } of tasks) {
      for (const { reason, from, note } of await this.#store.runs.ledger(definition)) {
        if (reason !== "frozen") continue;
        if (!note?.startsWith(`frozen by ${FREEZER} until `))
          fail(`${definition.id}: skipped at ${from} by a freeze, and the ledger names no author: ${note}`);
      }
    }
  }

  /** Keys of all run records. */
  async runs(): Promise<Set<string>> {
    return new Set(await this.#client.keys(internalsOf(this.#store).keys.queue(this.#queue).run("*")));
  }
}
