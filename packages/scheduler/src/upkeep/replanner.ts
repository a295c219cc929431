import { isAlive, type NodeInfo, redisError, type Store } from "@carillon/store";
import type { Settings } from "../options.js";

/** Interval in ms at which the time zone data of nodes and queues is compared. */
const ZONES_EVERY = 600_000;
/** Interval in ms at which each queue's indexes are compared with its definitions. */
const AUDIT_EVERY = 86_400_000;
/** Time-to-live of the mutex for replanning a queue, in ms. Two nodes that replan at once only do the work twice. */
const REPLAN_TTL = 60_000;
/** Marks a queue that was replanned while nodes with older data were alive: it must be replanned once more. */
const MIXED = " mixed";

/**
 * Replans tasks whose stored times are outdated: when a shared calendar changed and not all of its tasks were replanned, and when
 * the time zone data of this node is newer than the data that a queue was planned with.
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

  /** Begins a check in the background, unless one is in progress. */
  look(queues: readonly string[]): void {
    this.#working ??= this.check(queues)
      .catch((error: unknown) => {
        const { code, message } = redisError(error);
        this.#settings.logger.error({ code, error: message }, "replanning failed");
      })
      .finally(() => {
        this.#working = undefined;
      });
  }

  /** Resolves when the check in progress has ended. */
  async stop(): Promise<void> {
    await this.#working;
  }

  /** Checks all queues, also if one fails. @throws the last failure */
  async check(queues: readonly string[]): Promise<void> {
    const { calendars } = this.#store;
    await calendars.refresh();
    const failures = await this.#failuresOf(queues, (queue) => calendars.replanStale(queue));
    if (performance.now() >= this.#zonesAt) {
      await this.#store.freezes.mend(queues);
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
      // Times that older nodes compute from now on must be replanned when these nodes have stopped.
      else if (data === own && mixed) await this.#store.registry.setZone(queue, own + MIXED);
      else if (data < own || (data === own + MIXED && !mixed)) {
        await this.#replan(queue, mixed ? own + MIXED : own);
      }
    });
  }

  /** Compares each queue's indexes with its definitions, and repairs and logs differences, which should never occur. */
  async #audit(queues: readonly string[]): Promise<unknown[]> {
    const [audits, now] = await Promise.all([this.#store.registry.audits(), this.#store.serverTime()]);
    return this.#failuresOf(queues, async (queue) => {
      // An audit time in the future was written before the server's clock went back.
      if (Math.abs(now - (audits.get(queue) ?? 0)) < AUDIT_EVERY) return;
      const lease = await this.#store.lease(queue, "audit", REPLAN_TTL);
      if (!lease) return;
      try {
        const mended = await this.#store.tasks.audit(queue);
        await this.#store.registry.setAudit(queue, now);
        // The process that deleted the last task may have died before it could do this.
        await this.#store.registry.forgetIfEmpty(queue);
        if (mended > 0)
          this.#settings.logger.error({ queue, mended }, "repaired indexes that differed from definitions");
      } finally {
        await lease.release();
      }
    });
  }

  async #replan(queue: string, version: string): Promise<void> {
    const lease = await this.#store.lease(queue, "zone", REPLAN_TTL);
    // Another node does it.
    if (!lease) return;
    try {
      const { replanned, left } = await this.#store.tasks.replanAll(queue);
      await this.#store.registry.setZone(queue, version);
      if (left > 0) this.#settings.logger.error({ queue, left }, "could not replan tasks: put them again");
      this.#settings.logger.info(
        { queue, replanned, tzdata: version },
        "replanned with newer time zone data",
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
        "nodes have different time zone data: run the same Node.js version everywhere",
      );
    }
    this.#saidMixed = said;
  }

  /** Does the work for one queue after the other; stops at a failure if the connection is lost. */
  async #failuresOf(
    queues: readonly string[],
    work: (queue: string) => Promise<unknown>,
  ): Promise<unknown[]> {
    const failures: unknown[] = [];
    for (const queue of queues) {
      await work(queue).catch((error: unknown) => failures.push(error));
      if (failures.length > 0 && !this.#store.ready) break;
    }
    return failures;
  }
}
