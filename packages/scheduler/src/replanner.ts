import { isAlive, type NodeInfo, redisError, type Store } from "@carillon/store";
import type { Settings } from "./options.js";

/** How often nodes and queues are asked for their time zone data, in ms. */
const ZONES_EVERY = 600_000;
/** Each queue's indexes are compared with its definitions this often, in ms. */
const AUDIT_EVERY = 86_400_000;
/** The mutex of planning a queue anew is held at most this long, in ms. Two that plan at once only do the work twice. */
const REPLAN_TTL = 60_000;
/** Said of a queue that was planned anew while nodes with older data were alive: to be done once more. */
const MIXED = " mixed";

/**
 * Keeps stored times true to what schedules mean: where a shared calendar changed and whoever changed it could not plan all of
 * its tasks anew, and where the time zone data of this node is newer than what a queue was planned with.
 */
export class Replanner {
  readonly #store: Store;
  readonly #settings: Settings;
  readonly #tzdata: string | undefined;
  #zonesAt = 0;
  #saidMixed = "";
  #working: Promise<void> | undefined;

  /** @param tzdata version of the time zone data, `2026a` */
  constructor(store: Store, settings: Settings, tzdata: string | undefined = process.versions.tz) {
    this.#store = store;
    this.#settings = settings;
    this.#tzdata = tzdata;
  }

  /** Begins to look, beside the rounds; a look under way is enough. */
  look(queues: readonly string[]): void {
    this.#working ??= this.check(queues)
      .catch((error: unknown) => {
        const { code, message } = redisError(error);
        this.#settings.logger.error({ code, error: message }, "planning anew failed");
      })
      .finally(() => {
        this.#working = undefined;
      });
  }

  /** Resolves when the look under way is over. */
  async stop(): Promise<void> {
    await this.#working;
  }

  /** What fails in one queue is that queue's matter: the others are looked after. @throws what failed last */
  async check(queues: readonly string[]): Promise<void> {
    const { calendars } = this.#store;
    await calendars.refresh();
    const failures = await this.#failuresOf(queues, (queue) => calendars.replanStale(queue));
    if (performance.now() >= this.#zonesAt) {
      const others = [...(await this.#checkZones(queues)), ...(await this.#audit(queues))];
      if (others.length === 0) this.#zonesAt = performance.now() + ZONES_EVERY;
      failures.push(...others);
    }
    if (failures.length > 0) throw failures.at(-1);
  }

  async #checkZones(queues: readonly string[]): Promise<unknown[]> {
    const own = this.#tzdata;
    if (own === undefined) return [];
    const [nodes, planned, now] = await Promise.all([
      this.#store.registry.nodes(),
      this.#store.registry.zones(),
      this.#store.serverTime(),
    ]);
    const others = nodes
      .filter(({ id }) => id !== this.#settings.nodeId)
      .filter((node) => isAlive(node, now));
    this.#warn(others, own);
    const mixed = others.some(({ tzdata }) => tzdata < own);
    return this.#failuresOf(queues, async (queue) => {
      const data = planned.get(queue);
      if (data === undefined) await this.#store.registry.setZone(queue, own);
      // What they compute from here on is to be planned anew when they are gone.
      else if (data === own && mixed) await this.#store.registry.setZone(queue, own + MIXED);
      else if (data < own || (data === own + MIXED && !mixed)) {
        await this.#replan(queue, mixed ? own + MIXED : own);
      }
    });
  }

  /** The indexes follow from the definitions; should they ever differ, this is where it is noticed. */
  async #audit(queues: readonly string[]): Promise<unknown[]> {
    const [audits, now] = await Promise.all([this.#store.registry.audits(), this.#store.serverTime()]);
    return this.#failuresOf(queues, async (queue) => {
      // What is said of the future is from before the server's clock went back.
      if (Math.abs(now - (audits.get(queue) ?? 0)) < AUDIT_EVERY) return;
      const lease = await this.#store.mutex.take(this.#store.keys.queue(queue).mutex("audit"), REPLAN_TTL);
      if (!lease) return;
      try {
        const mended = await this.#store.tasks.audit(queue);
        await this.#store.registry.setAudit(queue, now);
        // Whoever took the last task away may not have lived to do it.
        await this.#store.registry.forgetIfEmpty(queue);
        if (mended > 0)
          this.#settings.logger.error({ queue, mended }, "indexes differed from definitions: mended");
      } finally {
        await lease.release();
      }
    });
  }

  async #replan(queue: string, version: string): Promise<void> {
    const lease = await this.#store.mutex.take(this.#store.keys.queue(queue).mutex("zone"), REPLAN_TTL);
    // Someone else is on it.
    if (!lease) return;
    try {
      const { replanned, left } = await this.#store.tasks.replanAll(queue);
      await this.#store.registry.setZone(queue, version);
      if (left > 0)
        this.#settings.logger.error({ queue, left }, "tasks that could not be planned anew: put them again");
      this.#settings.logger.info(
        { queue, replanned, tzdata: version },
        "planned anew with newer time zone data",
      );
    } finally {
      await lease.release();
    }
  }

  #warn(others: readonly NodeInfo[], own: string): void {
    const versions = [...new Set([own, ...others.map(({ tzdata }) => tzdata)])].sort();
    const said = versions.join(" ");
    if (versions.length > 1 && said !== this.#saidMixed) {
      this.#settings.logger.warn(
        { tzdata: versions, own },
        "nodes compute with different time zone data: run the same Node.js version everywhere",
      );
    }
    this.#saidMixed = said;
  }

  /** Does the work for each queue, one after the other; once the connection is lost, not for the rest. */
  async #failuresOf(
    queues: readonly string[],
    work: (queue: string) => Promise<unknown>,
  ): Promise<unknown[]> {
    const failures: unknown[] = [];
    for (const queue of queues) {
      await work(queue).catch((error: unknown) => failures.push(error));
      if (failures.length > 0 && !this.#store.link.ready) break;
    }
    return failures;
  }
}
